#!/usr/bin/env bash
# Get the parallel text of WMT18 English-Turkish (SETIMES2), tokenise, parse the source side, cut words, binarize text
# and trees.
#   bash examples/pascal_wmt18/prepare.sh                                       all of it
#   bash examples/pascal_wmt18/prepare.sh text | parse [SHARD] | binarize       one step; see ../wmt16/README.md
source "$(dirname "$0")/settings.sh"

text() {
    prepare_text https://object.pouta.csc.fi/OPUS-SETIMES/v2/moses/en-tr.txt.zip -- "$OUT/archives/SETIMES.en-tr"
}

prepare "$@"
