#!/usr/bin/env bash
# Get the parallel text of WMT17 English-German (Europarl v7, Common Crawl, Rapid 2016, News Commentary v12) or
# English-Russian (Common Crawl, News Commentary v12, Yandex), tokenise, cut words of each language by its own codes,
# binarize. No parses: trees are latent.
#   bash examples/wmt17/prepare.sh                       all of it, for both directions
#   bash examples/wmt17/prepare.sh text | binarize       one step; see README.md beside this file
#   YANDEX=/path/to/1mcorpus TARGET=ru bash examples/wmt17/prepare.sh        English and Russian
source "$(dirname "$0")/settings.sh"

text() {
    if [[ " ${LANGUAGES[*]} " != *" ru "* ]]; then
        wmt17_text
        return
    fi
    there "${YANDEX:-}/corpus.en_ru.1m.ru" \
        "give the folder of Yandex' parallel corpus, YANDEX=…; its owners give it out: https://translate.yandex.ru/corpus"
    prepare_text https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz \
        https://data.statmt.org/wmt17/translation-task/training-parallel-nc-v12.tgz -- \
        "$OUT/archives/commoncrawl.ru-en" "$OUT/archives/training/news-commentary-v12.ru-en" \
        "${YANDEX:-YANDEX}/corpus.en_ru.1m"
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
    run fairseq-preprocess --source-lang "${LANGUAGES[1]}" --target-lang "${LANGUAGES[0]}" --workers "$WORKERS" --trainpref "$BPE/train" \
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
