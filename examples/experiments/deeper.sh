#!/usr/bin/env bash
# Make everything that the systems of deeper.toml train on, in $OUT: the corpus of examples/agreement whose challenge set nests
# deeper than the training set, with gold, linear and random trees, those of a parser that has learned from the training set,
# and the data of LGP. `fairseq-syntax experiment` calls it.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
: "${OUT:=outputs/deeper}"
: "${TRAIN:=12000}" "${VALID:=400}" "${TEST:=400}" "${CHALLENGE:=40}" # sentences; of the challenge set, of a kind and depth
: "${PARSER_EPOCHS:=4}"
# the parser's trees of the challenge set; if they are not there, it is trained
: "${PARSES:=$ROOT/docs/results/deeper/parser.challenge.en.conllu.gz}"
corpus="$OUT/corpus"

run rm -rf "$OUT"/{corpus,pairs,treebank,parser,linear,random} "$OUT/data-bin-"*
run mkdir -p "$OUT"/{treebank,parser,linear,random}
run python "$EXAMPLES/agreement/generate.py" --output "$corpus" --deeper --train "$TRAIN" --valid "$VALID" --test "$TEST" \
    --challenge "$CHALLENGE" --seed 1
run python "$EXAMPLES/agreement/pairs.py" --corpus "$corpus" --output "$OUT/pairs" # what the models are asked besides
# how deep each sentence of the challenge set nests; flat ones are as long as deep ones
run_filter "$corpus/challenge.tsv" "$OUT/pairs/depths.txt" sed "1d; s/^\([^\t]*\t\)\{3\}//; s/\t.*//; s/^flat-0$/flat/; s/.*-//"
if [[ -f "$PARSES" ]]; then
    run_to "$OUT/parser/challenge.en.conllu" gzip -dc "$PARSES"
else
    for split in train valid; do
        run cp "$corpus/$split.en.conllu" "$OUT/treebank/$split.conllu"
    done
    run fairseq-train "$OUT/treebank" --user-dir "$USER_DIR" --cpu --task dependency_parsing --arch lgp_parser \
        --criterion joint_parsing --sentence-avg --optimizer lgp_sgd --momentum 0 --lr 1.0 --lr-scheduler inverse_epoch \
        --lgp-pass-clip-norms 1,2 --batch-size 100 --max-epoch "$PARSER_EPOCHS" --best-checkpoint-metric las \
        --maximize-best-checkpoint-metric --no-epoch-checkpoints --no-progress-bar --num-workers 0 --seed 1 \
        --save-dir "$OUT/parser"
    run fairseq-syntax parse --input "$corpus/challenge.en" --output "$OUT/parser/challenge.en.conllu" \
        --parser checkpoint --parser-model "$OUT/parser/checkpoint_best.pt" --parser-device cpu
fi
run cp "$corpus"/challenge.{en,de} "$OUT/parser/"
run python "$EXAMPLES/lgp/dictionary.py" "$OUT/dict.open.en.txt" "$corpus"/{train,valid,test,challenge}.en
for kind in gold linear random; do
    [[ "$kind" == gold ]] && text="$corpus" || text="$OUT/$kind"
    for split in train valid test challenge; do
        [[ "$kind" == gold ]] && break
        run fairseq-syntax perturb --trees "${kind/linear/right}" --input "$corpus/$split.en.conllu" \
            --output "$text/$split.en.conllu"
        for language in en de; do
            run cp "$corpus/$split.$language" "$text/"
        done
    done
    # with the trees of the parser, again, what has learned from gold ones
    [[ "$kind" == gold ]] && parsed="$OUT/parser" || parsed="$text"
    prefixes=(--trainpref "$text/train" --validpref "$text/valid" --testpref "$text/test,$text/challenge,$parsed/challenge")
    run fairseq-syntax preprocess --source-lang en --target-lang de --joined-dictionary "${prefixes[@]}" \
        --destdir "$OUT/data-bin-$kind"
    # LGP reads words by their spelling: its source dictionary holds all of them
    run fairseq-syntax preprocess --source-lang en --target-lang de --srcdict "$OUT/dict.open.en.txt" "${prefixes[@]}" \
        --destdir "$OUT/data-bin-open-$kind"
done
