#!/usr/bin/env bash
# Make everything that the systems of tanaka.toml train on, in $OUT: the Tanaka corpus with the trees of a parser, and the
# parser that the systems in _plus start from, in all/checkpoints. `fairseq-syntax experiment` calls it.
#   DATA   folder of a local copy, instead of downloading it; its *.conllu.gz are used if there, or else that parser's trees
#   UD     folder of a local copy of UD English-EWT
: "${OUT:=outputs/tanaka}"
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
for verb in prepare pretrain; do
    # whatever is set outside
    run env OUT="$OUT" PAIRS=all MIN_FREQUENCY=2 MIN_FREQUENCY_TARGET=2 bash "$EXAMPLES/recipe.sh" "$verb" lgp
done
