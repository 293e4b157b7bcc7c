#!/usr/bin/env bash
# Make everything that the systems of multi30k-low-resource.toml train on: the first pairs of Multi30k with the trees of a
# parser, 1,000 of them in $OUT/1000 and 10,000 in $OUT/10000, and the whole validation and test sets. `fairseq-syntax experiment` calls it.
#   DATA                           folder of a local copy, instead of downloading it; its *.conllu.gz are used if there
#   STANZA_TAGGER, STANZA_PARSER   model files, instead of Stanza's own English models
: "${OUT:=outputs/multi30k-low-resource}"
source "$(dirname "${BASH_SOURCE[0]}")/../multi30k/settings.sh"
run mkdir -p "$TEXT"
multi30k_split train train
multi30k_split valid val
multi30k_split test test_2016_flickr
multi30k_split test1 test_2017_flickr
trees=("$TEXT/train.$SOURCE".conllu*)
run_to "$OUT/train.conllu" gzip -dcf "${trees[0]}"
for size in 1000:1000 10000:4000; do # pairs, and BPE merges: fewer with less text
    pairs="${size%:*}" some="$OUT/${size%:*}"
    run mkdir -p "$some/text"
    run cp "$TEXT"/{valid,test,test1}.* "$some/text/"
    for language in "$SOURCE" "$TARGET"; do
        run_to "$some/text/train.$language" head -n "$pairs" "$TEXT/train.$language"
    done
    run_to "$some/text/train.$SOURCE.conllu" awk -v RS= -v ORS='\n\n' "NR <= $pairs" "$OUT/train.conllu"
    run env OUT="$some" MERGES="${size#*:}" bash "$EXAMPLES/recipe.sh" prepare multi30k
done
