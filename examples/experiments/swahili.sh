#!/usr/bin/env bash
# Make everything that the systems of swahili.toml train on, in $OUT: English-Swahili news (MAFAND-MT), with spaCy's trees and
# with linear ones. `fairseq-syntax experiment` calls it.
#   DATA   folder of the corpus: train, dev and test .en and .swa, plain or .gz (Adelani et al. 2022, CC BY-NC 4.0)
: "${OUT:=outputs/swahili}"
source "$(dirname "${BASH_SOURCE[0]}")/study.sh"
split_text train train sw swa
split_text valid dev sw swa
split_text test test sw swa
clean_training sw
parse_splits train valid test
perturbed_trees linear right train valid test
unless_there "$OUT/bpe.codes" run subword-nmt learn-joint-bpe-and-vocab -s 4000 --input "$TEXT/train.en" "$TEXT/train.sw" \
    -o "$OUT/bpe.codes" --write-vocabulary "$OUT/vocab.en" "$OUT/vocab.sw"
segment sw "$OUT/bpe.codes" "$OUT/bpe.codes" train valid test
binarize parser "$TEXT" sw test --joined-dictionary
binarize linear "$OUT/linear" sw test
