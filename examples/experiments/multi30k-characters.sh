#!/usr/bin/env bash
# Make everything that the systems of multi30k-characters.toml train on, in $OUT: the characters of Multi30k, German to
# English, of the published lower-cased tokens, so that scores go with those of the other tables. `fairseq-syntax experiment` calls it.
#   DATA   folder of a local copy, instead of downloading it
: "${OUT:=outputs/multi30k-characters}"
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
run mkdir -p "$OUT/tokens"
for split in train val test_2016_flickr test_2017_flickr; do
    multi30k_text "$OUT/tokens" "$split" "$split"
done
run env OUT="$OUT" DATA="$OUT/tokens" bash "$EXAMPLES/recipe.sh" prepare latent_tree
