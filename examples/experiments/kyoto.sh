#!/usr/bin/env bash
# Make everything that the systems of kyoto.toml train on, in $OUT: the Kyoto Wikipedia corpus, English-Japanese, with spaCy's
# trees and with linear ones. `fairseq-syntax experiment` calls it.
#   DATA   folder of the corpus: train, valid and test .en and .ja, plain or .gz (NICT, CC BY-SA 3.0)
: "${OUT:=outputs/kyoto}"
source "$(dirname "${BASH_SOURCE[0]}")/study.sh"
for split in train valid test; do
    split_text "$split" "$split" ja ja
done
clean_training ja
parse_splits train valid test
perturbed_trees linear right train valid test
for language in en ja; do
    unless_there "$OUT/bpe.codes.$language" \
        run_filter "$TEXT/train.$language" "$OUT/bpe.codes.$language" subword-nmt learn-bpe -s 6000
done
segment ja "$OUT/bpe.codes.en" "$OUT/bpe.codes.ja" train valid test
binarize parser "$TEXT" ja test
binarize linear "$OUT/linear" ja test
