#!/usr/bin/env bash
# Get the parallel text of WMT16 English-German (Europarl v7, Common Crawl, News Commentary v11), tokenise, parse the
# source side, cut words, binarize text and trees.
#   bash examples/wmt16/prepare.sh                                       all of it
#   bash examples/wmt16/prepare.sh text | parse [SHARD] | binarize       one step; see README.md beside this file
source "$(dirname "$0")/settings.sh"

text() {
    prepare_text https://www.statmt.org/europarl/v7/de-en.tgz \
        https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz \
        https://data.statmt.org/wmt16/translation-task/training-parallel-nc-v11.tgz -- \
        "$OUT/archives/europarl-v7.de-en" "$OUT/archives/commoncrawl.de-en" \
        "$OUT/archives/training-parallel-nc-v11/news-commentary-v11.de-en"
}

prepare "$@"
