#!/usr/bin/env bash
# Get the parallel text of WMT17 English-German (Europarl v7, Common Crawl, Rapid 2016, News Commentary v12), tokenise,
# cut words of each language by its own codes, binarize. No parses: trees are latent.
#   bash examples/wmt17/prepare.sh                       all of it, for both directions
#   bash examples/wmt17/prepare.sh text | binarize       one step; see README.md beside this file
source "$(dirname "$0")/settings.sh"

text() {
    prepare_text https://www.statmt.org/europarl/v7/de-en.tgz \
        https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz \
        https://data.statmt.org/wmt17/translation-task/rapid2016.tgz \
        https://data.statmt.org/wmt17/translation-task/training-parallel-nc-v12.tgz -- \
        "$OUT/archives/europarl-v7.de-en" "$OUT/archives/commoncrawl.de-en" "$OUT/archives/rapid2016.de-en" \
        "$OUT/archives/training/news-commentary-v12.de-en"
}

binarize() {
    local language
    run mkdir -p "$BPE"
    for language in "$SOURCE" "$TARGET"; do
        unless_there "$OUT/bpe.codes.$language" run_filter "$TEXT/train.$language" "$OUT/bpe.codes.$language" \
            subword-nmt learn-bpe -s "$MERGES"
    done
    apply_codes "$OUT/bpe.codes.%"
    run rm -rf "$DATA"
    run fairseq-preprocess --source-lang en --target-lang de --workers "$WORKERS" --trainpref "$BPE/train" \
        --validpref "$BPE/valid" --testpref "$(test_prefixes "$BPE")" --destdir "$DATA"
}

case "${1:-all}" in
all)
    text
    binarize
    ;;
text | binarize) "$1" ;;
*)
    echo "prepare.sh $1: choose text or binarize; nothing does both" >&2
    exit 2
    ;;
esac
