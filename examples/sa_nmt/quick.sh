#!/usr/bin/env bash
# A first run with latent trees: make a small corpus with gold trees, train the LSTM baseline and SA-NMT on its text
# alone, translate, score BLEU and verb agreement; then ask whether the trees that SA-NMT has found for itself attach the
# subject to its verb, and draw one. Everything lands in $OUT.
source "$(dirname "$0")/../quick_common.sh"
: "${OUT:=outputs/sa_nmt_quick}"
: "${UPDATES:=900}"
: "${SENTENCE:=9}"                  # of the test set, to draw
log="$OUT/quick.log"
fresh_out "$log"
agreement_corpus "$log"
say "binarizing the text; whole words, no trees"
logged "$log" fairseq-preprocess --source-lang en --target-lang de --trainpref "$OUT/corpus/train" \
    --validpref "$OUT/corpus/valid" --testpref "$OUT/corpus/test,$OUT/corpus/challenge" --destdir "$OUT/data-bin"

systems=(nmt_lstm sa_nmt_shared)
train() { # architecture
    logged "$OUT/$1.log" fairseq-train "$OUT/data-bin" --user-dir "$USER_DIR" --arch "${1}_tiny" --cpu --seed "$SEED" \
        --encoder-layers 1 --encoder-embed-dim 256 --encoder-hidden-size 128 \
        --decoder-layers 1 --decoder-embed-dim 256 --decoder-hidden-size 256 \
        --dropout 0.1 --optimizer adam --clip-norm 5.0 --lr 3e-3 --lr-scheduler inverse_sqrt --warmup-updates 200 \
        --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --batch-size 32 --max-update "$UPDATES" \
        --num-workers 0 --no-epoch-checkpoints --disable-validation --log-format simple --log-interval 20 \
        --save-dir "$OUT/$1"
}
all_of_it() { # architecture
    train "$1"
    translate "$1" --batch-size 64
}
# one process a core: both systems at the same time, under the same budget
say "training and translating with ${systems[*]} at the same time, $UPDATES updates each"
at_once all_of_it "${systems[@]}"
scores "${systems[@]}"
say "the trees that sa_nmt_shared has found in the test sentences, against the gold trees"
model=("$OUT/data-bin" --path "$OUT/sa_nmt_shared/checkpoint_last.pt" --cpu)
logged "$log" fairseq-syntax look "${model[@]}" --input "$OUT/corpus/test.en.conllu" --output "$OUT/trees.conllu"
logged_to "$log" "$OUT/attachment.txt" fairseq-syntax attachment --predicted "$OUT/trees.conllu" \
    --gold "$OUT/corpus/test.en.conllu"
logged_to "$log" "$OUT/subjects.txt" python "$EXAMPLES/sa_nmt/subjects.py" --gold "$OUT/corpus/test.en.conllu" \
    --predicted "$OUT/trees.conllu"
logged "$log" fairseq-syntax look "${model[@]}" --input "$OUT/corpus/test.en.conllu" --sentence "$SENTENCE" \
    --kind tree --draw "$OUT/tree.svg"
logged "$log" fairseq-syntax look "${model[@]}" --subset test --sentence "$SENTENCE" --kind heads \
    --draw "$OUT/heads.png"
for table in attachment subjects; do
    echo
    [[ -n "$DRY_RUN" ]] || cat "$OUT/$table.txt"
done
echo
say "done; pictures: $OUT/tree.svg, $OUT/heads.png; logs and outputs: $OUT/"
