#!/usr/bin/env bash
# Make everything that the systems of multi30k.toml train on, in $OUT: Multi30k with the trees of a parser, the same with
# random trees, and the multi-task corpus. `fairseq-syntax experiment` calls it.
#   DATA                           folder of a local copy, instead of downloading it; its *.conllu.gz are used if there
#   STANZA_TAGGER, STANZA_PARSER   model files, instead of Stanza's own English models
: "${OUT:=outputs/multi30k}"
source "$(dirname "${BASH_SOURCE[0]}")/../multi30k/settings.sh"
# whatever is set outside; the records have the symbol at the start
run env MERGES=8000 TASK_SYMBOL=start bash "$EXAMPLES/recipe.sh" prepare multi30k
run rm -rf "$OUT/data-bin-"{parser,random} "$OUT/random"
run mkdir -p "$OUT/random"
run mv "$OUT/data-bin" "$OUT/data-bin-parser"
for split in train valid test test1; do
    trees=("$OUT/bpe/$split.$SOURCE".conllu*)
    run fairseq-syntax perturb --trees random --input "${trees[0]}" \
        --output "$OUT/random/$split.$SOURCE.conllu"
    for language in "$SOURCE" "$TARGET"; do
        run cp "$OUT/bpe/$split.$language" "$OUT/random/"
    done
done
run fairseq-syntax preprocess --source-lang "$SOURCE" --target-lang "$TARGET" --workers "$WORKERS" \
    --srcdict "$OUT/data-bin-parser/dict.$SOURCE.txt" --tgtdict "$OUT/data-bin-parser/dict.$TARGET.txt" \
    --trainpref "$OUT/random/train" --validpref "$OUT/random/valid" --testpref "$OUT/random/test,$OUT/random/test1" \
    --destdir "$OUT/data-bin-random"
