#!/usr/bin/env bash
# Get Multi30k (task 1, English-German), parse its English side, cut words, binarize text and trees.
#   bash examples/multi30k/prepare.sh                         downloads the text and parses it with Stanza
#   DATA=/path/to/multi30k bash examples/multi30k/prepare.sh  takes a local copy; its *.conllu.gz are used if there
# With your own Stanza models: STANZA_TAGGER=tagger.pt STANZA_PARSER=parser.pt
source "$(dirname "$0")/settings.sh"
: "${DATA:=}" "${STANZA_TAGGER:=}" "${STANZA_PARSER:=}" "${PARSE_DEVICE:=}"
text="$OUT/text" bpe="$OUT/bpe"
run mkdir -p "$text" "$bpe"

get() { # split, name there
    multi30k_text "$text" "$1" "$2"
    local trees="$text/$1.$SOURCE.conllu"
    [[ -s "$trees.gz" || -s "$trees" ]] && return
    if [[ -n "$DATA" && -f "$DATA/$2.$SOURCE.conllu.gz" ]]; then
        run cp "$DATA/$2.$SOURCE.conllu.gz" "$trees.gz"
    else
        run fairseq-syntax-parse --input "$text/$1.$SOURCE" --output "$trees" --language "$SOURCE" \
            ${STANZA_TAGGER:+--tagger "$STANZA_TAGGER"} ${STANZA_PARSER:+--parser "$STANZA_PARSER"} \
            ${PARSE_DEVICE:+--device "$PARSE_DEVICE"}
    fi
}

get train train
get valid val
get test test_2016_flickr
get test1 test_2017_flickr

run subword-nmt learn-joint-bpe-and-vocab -s "$MERGES" --input "$text/train.$SOURCE" "$text/train.$TARGET" \
    -o "$OUT/bpe.codes" --write-vocabulary "$OUT/vocab.$SOURCE" "$OUT/vocab.$TARGET"
for split in train valid test test1; do
    for language in "$SOURCE" "$TARGET"; do
        run subword-nmt apply-bpe -c "$OUT/bpe.codes" \
            --input "$text/$split.$language" --output "$bpe/$split.$language"
    done
    # trees are of words: they serve any segmentation
    for trees in "$text/$split.$SOURCE".conllu*; do
        run cp "$trees" "$bpe/"
    done
done

run fairseq-syntax-preprocess --source-lang "$SOURCE" --target-lang "$TARGET" --joined-dictionary --workers "$WORKERS" \
    --trainpref "$bpe/train" --validpref "$bpe/valid" --testpref "$bpe/test,$bpe/test1" \
    --destdir "$OUT/data-bin" --overwrite

multitask_data "$bpe" "$OUT/bpe-multitask" "$OUT/data-bin-multitask" valid test test1
