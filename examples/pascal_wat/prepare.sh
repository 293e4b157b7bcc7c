#!/usr/bin/env bash
# Text of ASPEC (English-Japanese), all three parts: tokenise, parse the source side, cut words, binarize text and trees.
#   CORPUS=/path/to/ASPEC-JE bash examples/pascal_wat/prepare.sh                all of it
#   CORPUS=… bash examples/pascal_wat/prepare.sh text | parse [SHARD] | binarize       one step; see ../wmt16/README.md
# CORPUS is the corpus as it is distributed, with train/train-1.txt to -3.txt, dev/dev.txt and test/test.txt.
source "$(dirname "$0")/settings.sh"

# The corpus has fields between " ||| ", of which the last is English and the one before Japanese.
text() {
    local split language field
    local -a files
    there "${CORPUS:-}/train/train-1.txt" \
        "give the folder of the corpus, CORPUS=…; its owners give it out: https://jipsti.jst.go.jp/aspec/"
    run mkdir -p "$TEXT"
    for split in all "${SPLITS[@]}"; do
        case "$split" in
        all) files=("${CORPUS:-CORPUS}"/train/train-{1,2,3}.txt) ;;
        *) files=("${CORPUS:-CORPUS}/$(newstest "$split")/$(newstest "$split").txt") ;;
        esac
        for language in "$SOURCE" "$TARGET"; do
            [[ "$language" == en ]] && field=NF || field="(NF - 1)"
            unless_there "$TEXT/$split.raw.$language" \
                run_to "$TEXT/$split.raw.$language" awk -F ' [|][|][|] ' "{ print \$$field }" "${files[@]}"
        done
    done
    tokenise_text
}

prepare "$@"
