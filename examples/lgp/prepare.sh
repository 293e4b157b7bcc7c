#!/usr/bin/env bash
# Text of the Tanaka corpus (English-Japanese), a treebank, trees for the system dep, and binarized data.
#   bash examples/lgp/prepare.sh                              all of it; text and treebank are downloaded
#   bash examples/lgp/prepare.sh text | trees | binarize      one step
# Variables:
#   DATA      folder of a local copy: train, dev and test .en and .ja, plain or .gz, and trees, if any: train.en.conllu.gz …
#   UD        folder of a local copy of UD English-EWT;  TREEBANK: folder of another treebank
#   PARSES    given: the trees in DATA, if there are any;  own: a parser is trained for them, as by pretrain.sh;
#             none: no trees, which dep alone needs
source "$(dirname "$0")/settings.sh"
TANAKA=https://raw.githubusercontent.com/odashi/small_parallel_enja/master
: "${DATA:=}"
if [[ -z "${PARSES:-}" ]]; then
    PARSES=own
    [[ -z "$DATA" ]] || ! existing "$DATA/train.$SOURCE.conllu"{,.gz} &> /dev/null || PARSES=given
fi

FULL="$OUT/full" # everything there is, of which PAIRS are taken

# How a split is called there: name_there SPLIT
name_there() {
    [[ "$1" == valid ]] && echo dev || echo "$1"
}

# How many sentences of it are taken: how_many SPLIT
how_many() {
    [[ "$1" == train ]] && echo "$PAIRS" || echo all
}

text() {
    local split language name file
    run mkdir -p "$FULL"
    for split in train "${SPLITS[@]}"; do
        for language in "$SOURCE" "$TARGET"; do
            name="$(name_there "$split").$language"
            if [[ -n "$DATA" ]]; then
                file="$(existing "$DATA/$name" "$DATA/$name.gz")"
                unless_there "$FULL/$name" run_to "$FULL/$name" gzip -dcf "$file"
            else
                unless_there "$FULL/$name" download "$FULL/$name" "$TANAKA/$name"
            fi
            first_lines "$(how_many "$split")" "$FULL/$name" "$TEXT/$split.$language"
        done
    done
}

given_trees() {
    local split name file
    for split in train "${SPLITS[@]}"; do
        name="$(name_there "$split").$SOURCE.conllu"
        file="$(existing "$DATA/$name" "$DATA/$name.gz")"
        unless_there "$FULL/$name" run_to "$FULL/$name" gzip -dcf "$file"
        first_trees "$(how_many "$split")" "$FULL/$name" "$TEXT/$split.$SOURCE.conllu"
    done
}

prepare "$@"
