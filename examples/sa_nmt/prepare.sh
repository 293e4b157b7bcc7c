#!/usr/bin/env bash
# Get Multi30k (task 1, English-German), cut words, binarize. No parses: trees are latent.
#   bash examples/sa_nmt/prepare.sh                         downloads the text
#   DATA=/path/to/multi30k bash examples/sa_nmt/prepare.sh  takes a local copy
source "$(dirname "$0")/settings.sh"
: "${DATA:=}"
text="$OUT/text" bpe="$OUT/bpe"
run mkdir -p "$text" "$bpe"

multi30k_text "$text" train train
multi30k_text "$text" valid val
multi30k_text "$text" test test_2016_flickr
multi30k_text "$text" test1 test_2017_flickr

for language in en de; do
    run subword-nmt learn-bpe -s "$MERGES" --input "$text/train.$language" --output "$OUT/bpe.codes.$language"
    for split in train valid test test1; do
        run subword-nmt apply-bpe -c "$OUT/bpe.codes.$language" \
            --input "$text/$split.$language" --output "$bpe/$split.$language"
    done
done

run rm -rf "$DATA_BIN"
run fairseq-preprocess --source-lang en --target-lang de --workers "$WORKERS" --trainpref "$bpe/train" \
    --validpref "$bpe/valid" --testpref "$bpe/test,$bpe/test1" --destdir "$DATA_BIN"
