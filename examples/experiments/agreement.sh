#!/usr/bin/env bash
# Make everything that the systems of agreement.toml train on, in $OUT: the agreement corpus with gold trees, the trees of a
# parser and random trees, the multi-task corpus, the data of LGP, and characters. Whole words, so that all systems read the
# same. `fairseq-syntax experiment` calls it.
#   STANZA_TAGGER, STANZA_PARSER   model files, instead of Stanza's own English models
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
: "${OUT:=outputs/agreement}"
: "${STANZA_TAGGER:=}" "${STANZA_PARSER:=}"
: "${TRAIN:=6000}"                  # training sentences
SOURCE=en TARGET=de WORKERS=1
corpus="$OUT/corpus"

run rm -rf "$OUT"/{corpus,pairs,parser,random,multitask,characters} "$OUT/data-bin-"*
run mkdir -p "$OUT"/{parser,random,characters}
run python "$EXAMPLES/agreement/generate.py" --output "$corpus" --train "$TRAIN" --seed 1
run python "$EXAMPLES/agreement/pairs.py" --corpus "$corpus" --output "$OUT/pairs" # and kinds of sentences
for split in train valid test challenge; do
    for kind in parser random; do
        for language in en de; do
            run cp "$corpus/$split.$language" "$OUT/$kind/"
        done
    done
    run fairseq-syntax perturb --trees random --input "$corpus/$split.en.conllu" \
        --output "$OUT/random/$split.en.conllu"
    run fairseq-syntax parse --input "$corpus/$split.en" --output "$OUT/parser/$split.en.conllu" --parser-language en \
        ${STANZA_TAGGER:+--parser-tagger "$STANZA_TAGGER"} ${STANZA_PARSER:+--parser-model "$STANZA_PARSER"} \
        --parser-device cpu
    for language in en de; do
        run fairseq-syntax characters --input "$corpus/$split.$language" --output "$OUT/characters/$split.$language"
    done
done
for kind in agreement attachment; do # pairs for the models of characters
    for file in src.en tgt.correct.de tgt.incorrect.de; do
        run fairseq-syntax characters --input "$OUT/pairs/$kind/$file" --output "$OUT/pairs/$kind/characters/$file"
    done
    run cp "$OUT/pairs/$kind/details.tsv" "$OUT/pairs/$kind/characters/"
done
for kind in parser random; do # how good they are
    run_to "$OUT/$kind/attachment.txt" fairseq-syntax attachment --predicted "$OUT/$kind/test.en.conllu" \
        --gold "$corpus/test.en.conllu"
done

run python "$EXAMPLES/lgp/dictionary.py" "$OUT/dict.open.en.txt" "$corpus"/{train,valid,test,challenge}.en
for kind in gold parser random; do
    [[ "$kind" == gold ]] && text="$corpus" || text="$OUT/$kind"
    prefixes=(--trainpref "$text/train" --validpref "$text/valid" --testpref "$text/test,$text/challenge")
    run fairseq-syntax preprocess --source-lang en --target-lang de --joined-dictionary "${prefixes[@]}" \
        --destdir "$OUT/data-bin-$kind"
    # LGP reads words by their spelling: its source dictionary holds all of them
    run fairseq-syntax preprocess --source-lang en --target-lang de --srcdict "$OUT/dict.open.en.txt" "${prefixes[@]}" \
        --destdir "$OUT/data-bin-open-$kind"
done
TASK_SYMBOL=start multitask_data "$corpus" "$OUT/multitask" "$OUT/data-bin-multitask" valid test challenge
run fairseq-preprocess --source-lang en --target-lang de --padding-factor 1 --trainpref "$OUT/characters/train" \
    --validpref "$OUT/characters/valid" --testpref "$OUT/characters/test,$OUT/characters/challenge" \
    --destdir "$OUT/data-bin-characters"
