#!/usr/bin/env bash
# Get News Commentary v11 (English-German), tokenise, parse the source side, cut words, binarize text and trees.
#   bash examples/nc11/prepare.sh                         all of it, English to German
#   SOURCE=de TARGET=en bash examples/nc11/prepare.sh     German to English, from the same text
#   bash examples/nc11/prepare.sh text | parse [SHARD] | binarize        one step; see README.md beside this file
source "$(dirname "$0")/settings.sh"

text() {
    prepare_text https://data.statmt.org/wmt16/translation-task/training-parallel-nc-v11.tgz -- \
        "$OUT/archives/training-parallel-nc-v11/news-commentary-v11.de-en"
}

prepare "$@"
