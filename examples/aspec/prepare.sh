#!/usr/bin/env bash
# Text of ASPEC (English-Japanese), a treebank, trees for the system dep, and binarized data.
#   DATA=/path/to/ASPEC-JE bash examples/aspec/prepare.sh                        all of it
#   DATA=/path/to/ASPEC-JE bash examples/aspec/prepare.sh text | trees | binarize      one step
# Variables:
#   DATA          the corpus as it is distributed: train-1.txt and train-2.txt, dev.txt, devtest.txt and test.txt, in this
#                 folder or in train, dev, devtest and test below it; or train, dev, devtest and test .en and .ja, plain or
#                 .gz, already tokenised
#   TOKENIZE_EN   command that tokenises English, lines from standard input to standard output
#   SEGMENT_JA    the same for Japanese
#   TREEBANK      folder with train.conllu and valid.conllu (the paper: Wall Street Journal); without it UD English-EWT is
#                 taken, from the folder UD or downloaded
#   PARSES        own: a parser is trained for the trees, as by pretrain.sh;  given: train.en.conllu.gz … are in DATA, of
#                 the sentences that are kept;  none: no trees, which dep alone needs (large)
source "$(dirname "$0")/settings.sh"
if [[ -z "${DATA:-}" ]]; then
    echo "prepare.sh: give the folder of the corpus, DATA=…; its owners give it out: https://jipsti.jst.go.jp/aspec/" >&2
    exit 2
fi
: "${PARSES:=own}"
: "${TOKENIZE_EN:=python $ROOT/examples/wmt_text.py tokenize --language en --workers $WORKERS}"
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
    [[ "$2" == en ]] && read -ra command <<< "$TOKENIZE_EN" || read -ra command <<< "$SEGMENT_JA"
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
    unless_there "$FULL/kept.$TARGET" run python "$ROOT/examples/wmt_text.py" clean --input "$FULL/train" \
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
    local split name file
    for split in train "${SPLITS[@]}"; do
        name="$(name_there "$split").$SOURCE.conllu"
        file="$(existing "$DATA/$name" "$DATA/$name.gz")"
        unless_there "$FULL/$name" run_to "$FULL/$name" gzip -dcf "$file"
        if [[ "$split" == train ]]; then
            first_trees "$PAIRS" "$FULL/$name" "$TEXT/train.$SOURCE.conllu"
        else
            run cp "$FULL/$name" "$TEXT/$split.$SOURCE.conllu"
        fi
    done
}

prepare "$@"
