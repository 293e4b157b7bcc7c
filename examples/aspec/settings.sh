# Every setting can be overridden from the environment, and so can those of
# `settle` in ../lgp/training.sh. Numbers are those of Hashimoto & Tsuruoka (2017), Sec. 4, unless said otherwise.
source "$(dirname "${BASH_SOURCE[0]}")/../lgp/training.sh"
: "${OUT:=outputs/aspec}"           # everything is written below, text and models to a folder for each SIZE
: "${SOURCE:=en}" "${TARGET:=ja}"
: "${SIZE:=small}"                  # small, medium or large
: "${LOWERCASE=}"                   # the text has capitals
: "${FIRST_PAIRS:=1500000}"         # of the training text; then those of at most MAX_WORDS words, and of these PAIRS
: "${MAX_WORDS:=50}"
: "${DEP_FIRST_K:=all}"
: "${DEVICE_OPTION:=}"              # --cpu, to try things out
SPLITS=(valid test test1)           # dev, test, devtest
WORK="$OUT/$SIZE"
read -ra DEVICE <<< "$DEVICE_OPTION"

case "$SIZE" in
small)
    : "${PAIRS:=20000}"
    ;;
medium)
    : "${PAIRS:=100000}" "${FIRST_K:=all}"
    ;;
large)
    : "${PAIRS:=all}" "${FIRST_K:=all}" "${MIN_FREQUENCY:=3}" "${MIN_FREQUENCY_TARGET:=5}" "${NOISE:=2500}"
    : "${MOMENTUM:=0.70}" "${HALVE_AFTER:=0}" "${BEAM:=50}" "${BATCH_GENERATE:=16}"
    : "${PARSES:=none}"             # the paper has no dep of this size
    : "${MAX_EPOCH:=40}"            # half epochs; ours
    ;;
*) stop "SIZE=$SIZE: choose small, medium or large" ;;
esac
: "${ARCH:=lgp_$SIZE}"
settle
: "${PARSES:=own}"
[[ "$VERB" != prepare || -n "${DATA:-}" ]] ||
    stop "give the folder of the corpus, DATA=…; its owners give it out: https://jipsti.jst.go.jp/aspec/"

# DATA          the corpus as it is distributed: train-1.txt and train-2.txt, dev.txt, devtest.txt and test.txt, in this
#               folder or in train, dev, devtest and test below it; or train, dev, devtest and test .en and .ja, plain or
#               .gz, already tokenised, with trees, if any: train.en.conllu.gz …, of the sentences that are kept
# TOKENIZE_EN   command that tokenises English, lines from standard input to standard output;  SEGMENT_JA: Japanese
: "${TOKENIZE_EN:=python $EXAMPLES/wmt_text.py tokenize --language en --workers $WORKERS}"
: "${SEGMENT_JA:=kytea -out tok}"
FULL="$OUT/full" # everything there is, of which PAIRS are taken

# What a split is called there: name_there SPLIT
name_there() {
    case "$1" in
    valid) echo dev ;;
    test1) echo devtest ;;
    *) echo "$1" ;;
    esac
}

# Files of a split in the format of the corpus: FILES.  corpus_files NAME
corpus_files() {
    local part file
    FILES=()
    if [[ "$1" != train ]]; then
        file="$(existing "$DATA/$1.txt" "$DATA/$1/$1.txt")"
        FILES=("$file")
        return
    fi
    for part in 1 2; do
        file="$(existing "$DATA/train-$part.txt" "$DATA/train/train-$part.txt")"
        FILES+=("$file")
    done
}

# One language of a split, tokenised: tokenised NAME LANGUAGE
# The corpus has fields between " ||| ", of which the last is English and the one before Japanese.
tokenised() {
    local goal="$FULL/$1.$2" field=NF command file limit=""
    if [[ -f "$DATA/$1.$2" || -f "$DATA/$1.$2.gz" ]]; then
        file="$(existing "$DATA/$1.$2" "$DATA/$1.$2.gz")"
        run_to "$goal" gzip -dcf "$file"
        return
    fi
    read -ra command <<< "$SEGMENT_JA"
    [[ "$2" != en ]] || read -ra command <<< "$TOKENIZE_EN"
    [[ "$2" == en ]] || field="(NF - 1)"
    [[ "$1" != train ]] || limit="NR <= $FIRST_PAIRS "
    corpus_files "$1"
    run_to "$FULL/$1.raw.$2" awk -F ' [|][|][|] ' "$limit{ print \$$field }" "${FILES[@]}"
    run_filter "$FULL/$1.raw.$2" "$goal" "${command[@]}"
}

text() {
    local split language name
    run mkdir -p "$FULL"
    for split in train "${SPLITS[@]}"; do
        name="$(name_there "$split")"
        for language in "$SOURCE" "$TARGET"; do
            unless_there "$FULL/$name.$language" tokenised "$name" "$language"
        done
    done
    # 1 to MAX_WORDS words a side; of no other pair is the ratio greater
    unless_there "$FULL/kept.$TARGET" run python "$EXAMPLES/wmt_text.py" clean --input "$FULL/train" \
        --output "$FULL/kept" --source-lang "$SOURCE" --target-lang "$TARGET" --max-words "$MAX_WORDS" \
        --max-ratio "$MAX_WORDS" --workers "$WORKERS"
    for language in "$SOURCE" "$TARGET"; do
        first_lines "$PAIRS" "$FULL/kept.$language" "$TEXT/train.$language"
        for split in "${SPLITS[@]}"; do
            run cp "$FULL/$(name_there "$split").$language" "$TEXT/$split.$language"
        done
    done
}

given_trees() {
    local split name pairs="$PAIRS"
    for split in train "${SPLITS[@]}"; do
        name="$(name_there "$split").$SOURCE.conllu"
        fetch "$FULL/$name" "$name"
        first_trees "$pairs" "$FULL/$name" "$TEXT/$split.$SOURCE.conllu"
        pairs=all
    done
}
