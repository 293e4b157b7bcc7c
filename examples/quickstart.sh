#!/usr/bin/env bash
# The quick start, `make demo`: make a small corpus with gold trees, train a stock Transformer and PASCAL on it under
# one budget, translate, score BLEU and verb agreement, draw one attention picture. Everything lands in $OUT.
source "$(dirname "$0")/quick_common.sh"
: "${OUT:=demo-out}"
: "${UPDATES:=450}"
systems=(transformer pascal)
log="$OUT/demo.log"
fresh_out "$log"
say "making the agreement corpus (English-like to German-like, with gold trees)"
logged "$log" python "$EXAMPLES/agreement/generate.py" --output "$OUT/corpus" --seed "$SEED"

say "cutting words into subwords (subword-nmt, 1000 joint merges)"
logged "$log" subword-nmt learn-joint-bpe-and-vocab -s 1000 --input "$OUT/corpus/train.en" "$OUT/corpus/train.de" \
    -o "$OUT/codes" --write-vocabulary "$OUT/vocab.en" "$OUT/vocab.de"
run mkdir -p "$OUT/bpe"
for split in train valid test challenge; do
    for language in en de; do
        logged "$log" subword-nmt apply-bpe -c "$OUT/codes" \
            --input "$OUT/corpus/$split.$language" --output "$OUT/bpe/$split.$language"
    done
    run cp "$OUT/corpus/$split.en.conllu" "$OUT/bpe/" # trees are of words: they serve any segmentation
done

say "binarizing text and trees (fairseq-syntax preprocess)"
logged "$log" fairseq-syntax preprocess --source-lang en --target-lang de --joined-dictionary --trainpref "$OUT/bpe/train" \
    --validpref "$OUT/bpe/valid" --testpref "$OUT/bpe/test,$OUT/bpe/challenge" --destdir "$OUT/data-bin"

train_and_translate() { # system
    local split architecture=(--arch transformer_tiny)
    [[ "$1" == pascal ]] && architecture=(--arch pascal_transformer_tiny --pascal-heads 2)
    logged "$OUT/$1.log" fairseq-train "$OUT/data-bin" --user-dir "$USER_DIR" "${architecture[@]}" --cpu --seed "$SEED" \
        --share-all-embeddings --encoder-embed-dim 128 --decoder-embed-dim 128 --encoder-ffn-embed-dim 256 \
        --decoder-ffn-embed-dim 256 --encoder-attention-heads 4 --decoder-attention-heads 4 --dropout 0.1 \
        --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 1.0 --lr 3e-3 --lr-scheduler inverse_sqrt \
        --warmup-updates 200 --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --max-tokens 2500 \
        --max-update "$UPDATES" --num-workers 0 --no-epoch-checkpoints --disable-validation --log-format simple \
        --log-interval 20 --save-dir "$OUT/$1"
    for split in test challenge; do # `test1` of the data is the challenge set
        logged_to "$OUT/$1.log" "$OUT/$1.$split.generated" fairseq-generate "$OUT/data-bin" --user-dir "$USER_DIR" \
            --cpu --path "$OUT/$1/checkpoint_last.pt" --gen-subset "${split/challenge/test1}" --beam 2 \
            --max-tokens 4000 --remove-bpe --max-len-a 1.5 --max-len-b 10
        hypotheses "$OUT/$1.$split.generated" "$OUT/$1.$split.de"
    done
}
# one process a core: both systems at the same time, under the same budget
say "training and translating with ${systems[*]} at the same time, $UPDATES updates each"
at_once train_and_translate "${systems[@]}"

say "drawing what a parent-scaled head attends to"
logged "$log" fairseq-syntax look "$OUT/data-bin" --path "$OUT/pascal/checkpoint_last.pt" --subset test1 \
    --sentence 250 --kind heads --draw "$OUT/attention.png"

for system in "${systems[@]}"; do
    printf '\n== %s\n' "$system"
    run_to "$OUT/$system.bleu" sacrebleu "$OUT/corpus/test.de" --input "$OUT/$system.test.de" --tokenize none \
        --force --format text
    run_to "$OUT/$system.agreement" python "$EXAMPLES/agreement/score.py" --challenge "$OUT/corpus/challenge.tsv" \
        --hypotheses "$OUT/$system.challenge.de"
    [[ -n "$DRY_RUN" ]] || cat "$OUT/$system.bleu" "$OUT/$system.agreement"
done
echo
say "done; picture: $OUT/attention.png, logs and outputs: $OUT/"
[[ -z "$DRY_RUN" ]] || exit 0
bleu() { sed 's/^[^=]*= \([0-9.]*\) .*/\1/' "$OUT/$1.bleu"; }
agreement() { awk '$1 == "all" { sub("%", " %", $3); print $3 }' "$OUT/$1.agreement"; }
echo "PASCAL has $(bleu pascal) BLEU and $(agreement pascal) of the verbs right, the Transformer $(bleu transformer) and" \
    "$(agreement transformer), with one seed and $UPDATES updates; docs/records/quick-start.md has three seeds."
echo "Next, your own corpus: fairseq-syntax experiment study --source en --target de --train … (docs/corpus.md)"
