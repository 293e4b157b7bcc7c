#!/usr/bin/env bash
# Make what the search of sizes.toml trains on, in $OUT: the first 3,000 and 10,000 pairs of English-Swahili news (MAFAND-MT),
# with subwords of several sizes, and its validation set. `fairseq-syntax experiment` calls it.
#   DATA   folder of the corpus: train and dev .en and .swa, plain or .gz (Adelani et al. 2022, CC BY-NC 4.0)
: "${OUT:=outputs/sizes}"
source "$(dirname "${BASH_SOURCE[0]}")/study.sh"
there "$DATA/train.en.gz" "DATA is to be the folder of the corpus"
for pairs in 3000 10000; do
    run mkdir -p "$OUT/raw/$pairs"
    for pair in en:en sw:swa; do
        run_to "$OUT/raw/$pairs/train.${pair%:*}" bash -c "gzip -dcf '$DATA/train.${pair#*:}.gz' | sed ${pairs}q"
        run_to "$OUT/raw/$pairs/valid.${pair%:*}" gzip -dcf "$DATA/dev.${pair#*:}.gz"
    done
    for merges in 1000 2000 4000; do
        run fairseq-syntax preprocess --raw "$OUT/text/$pairs-$merges" --source-lang en --target-lang sw --parser none \
            --source-tokenizer "spacy:$SPACY" --trainpref "$OUT/raw/$pairs/train" --validpref "$OUT/raw/$pairs/valid" \
            --subword-size "$merges" --joined-dictionary --destdir "$OUT/data-bin-$pairs-$merges" --overwrite
    done
done
