#!/usr/bin/env bash
# A first run with syntax-directed attention: make a small corpus with gold trees, train global attention, SDAtt and both
# together under one budget, translate, score BLEU and verb agreement, and compare. Everything lands in $OUT.
#   bash examples/sdatt/quick.sh [options of fairseq-train, for all three]
source "$(dirname "$0")/../quick_common.sh"
: "${OUT:=outputs/sdatt_quick}"
: "${UPDATES:=900}"
systems=(global_att sdatt global_plus_sdatt)
options=("$@")
log="$OUT/quick.log"
fresh_out "$log"

agreement_corpus "$log"
say "binarizing text and trees; whole words"
logged "$log" fairseq-syntax preprocess --source-lang en --target-lang de --trainpref "$OUT/corpus/train" \
    --validpref "$OUT/corpus/valid" --testpref "$OUT/corpus/test,$OUT/corpus/challenge" --destdir "$OUT/data-bin"

train_and_translate() { # architecture
    logged "$OUT/$1.log" fairseq-train "$OUT/data-bin" --user-dir "$USER_DIR" --arch "${1}_tiny" --cpu --seed "$SEED" \
        --encoder-embed-dim 256 --encoder-hidden-size 128 --decoder-embed-dim 256 --decoder-hidden-size 256 \
        --init-range 0.08 --dropout 0.1 --optimizer adam --clip-norm 1.0 --lr 3e-3 --lr-scheduler inverse_sqrt \
        --warmup-updates 200 --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --batch-size 32 \
        --max-update "$UPDATES" --num-workers 0 --no-epoch-checkpoints --disable-validation --log-format simple \
        --log-interval 20 --save-dir "$OUT/$1" "${options[@]}"
    translate "$1" --batch-size 64
}
say "training and translating with ${systems[*]} at the same time, $UPDATES updates each"
at_once train_and_translate "${systems[@]}"
scores "${systems[@]}"
say "do they differ, and at which lengths of the source?"
outputs=()
for system in "${systems[@]}"; do
    outputs+=(--system "$system" "$OUT/$system.test.generated")
done
logged_to "$log" "$OUT/compare.txt" fairseq-syntax compare "${outputs[@]}" \
    --reference "$OUT/corpus/test.de" --source "$OUT/corpus/test.en" --buckets 5 --draw "$OUT/lengths.svg"
[[ -n "$DRY_RUN" ]] || cat "$OUT/compare.txt"
echo
say "done; picture: $OUT/lengths.svg, logs and outputs: $OUT/"
