#!/usr/bin/env bash
# Get the parallel text of WMT14 English-German (Europarl v7, Common Crawl, News Commentary v9), tokenise, parse the
# source side, cut words, binarize text and trees.
#   bash examples/wmt14/prepare.sh                                       all of it
#   bash examples/wmt14/prepare.sh text | parse [SHARD] | binarize       one step; see ../wmt16/README.md
source "$(dirname "$0")/settings.sh"

text() {
    prepare_text https://www.statmt.org/europarl/v7/de-en.tgz \
        https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz \
        https://www.statmt.org/wmt14/training-parallel-nc-v9.tgz -- \
        "$OUT/archives/europarl-v7.de-en" "$OUT/archives/commoncrawl.de-en" \
        "$OUT/archives/training/news-commentary-v9.de-en"
}

prepare "$@"
