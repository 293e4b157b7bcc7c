#!/usr/bin/env bash
# Get the parallel text of WMT17 English-German (Europarl v7, Common Crawl, Rapid 2016, News Commentary v12), tokenise,
# parse the source side, cut words, binarize text and trees.
#   bash examples/pascal_wmt17/prepare.sh                                       all of it
#   bash examples/pascal_wmt17/prepare.sh text | parse [SHARD] | binarize       one step; see ../wmt16/README.md
source "$(dirname "$0")/settings.sh"

text() {
    wmt17_text
}

prepare "$@"
