#!/usr/bin/env bash
# A first run with latent constituents: make text of a language whose words are known, train the latent-tree RNNG and the
# LSTM baseline on its characters, translate, score; then draw some trees.
# Everything lands in $OUT.
#   bash examples/latent_tree/quick.sh [options of fairseq-train, for both]
#   SPACES    between words, 1 (default) or, with nothing to tell where words begin, 0
#   PRESET    --rnng-preset of the latent-tree RNNG
source "$(dirname "$0")/../quick_common.sh"
: "${OUT:=outputs/latent_tree_quick}"
: "${UPDATES:=1200}" "${SPACES:=1}" "${PRESET:=shallow}"
systems=(latent_tree_rnng char_lstm)
options=("$@")
corpus_options=()
[[ "$SPACES" == 0 ]] || corpus_options=(--spaces)
log="$OUT/quick.log"
fresh_out "$log"
say "making the artificial language"
logged "$log" python "$EXAMPLES/latent_tree/artificial.py" --output "$OUT/corpus" --seed "$SEED" \
    "${corpus_options[@]}"
say "binarizing its characters"
logged "$log" fairseq-preprocess --source-lang src --target-lang tgt --padding-factor 1 --trainpref "$OUT/corpus/train" \
    --validpref "$OUT/corpus/valid" --testpref "$OUT/corpus/test" --destdir "$OUT/data-bin"

train_and_translate() { # architecture
    local system=(--arch char_lstm --encoder-embed-dim 64 --encoder-hidden-size 32 --decoder-embed-dim 64
        --decoder-hidden-size 64 --criterion cross_entropy)
    local trees=()
    if [[ "$1" == latent_tree_rnng ]]; then
        system=(--task tree_translation --arch "$1" --rnng-size 64 --criterion reinforce_tree
            --rnng-preset "$PRESET")
        trees=(--task tree_translation --rnng-tree-output)
    fi
    logged "$OUT/$1.log" fairseq-train "$OUT/data-bin" --user-dir "$USER_DIR" "${system[@]}" --cpu --seed "$SEED" \
        --optimizer adam --lr 3e-3 --lr-scheduler inverse_sqrt --warmup-updates 100 --clip-norm 5.0 --batch-size 32 \
        --required-batch-size-multiple 1 --max-update "$UPDATES" --num-workers 0 --no-epoch-checkpoints \
        --disable-validation --log-format simple --log-interval 20 --save-dir "$OUT/$1" "${options[@]}"
    logged_to "$OUT/$1.log" "$OUT/$1.test.generated" fairseq-generate "$OUT/data-bin" --user-dir "$USER_DIR" \
        "${trees[@]}" --cpu --path "$OUT/$1/checkpoint_last.pt" --gen-subset test --beam 1 --batch-size 50 \
        --max-len-a 2 --max-len-b 10 --bpe syntax_char --scoring sacrebleu
    hypotheses "$OUT/$1.test.generated" "$OUT/$1.test.tgt"
}
# one process a core: both systems at the same time, under the same budget
say "training and translating with ${systems[*]} at the same time, $UPDATES updates each"
at_once train_and_translate "${systems[@]}"
for system in "${systems[@]}"; do
    printf '\n== %s\n' "$system"
    # characters are the words here
    run_to "$OUT/$system.bleu" sacrebleu "$OUT/corpus/test.tgt" --input "$OUT/$system.test.tgt" --tokenize none --force \
        --format text
    [[ -n "$DRY_RUN" ]] || cat "$OUT/$system.bleu"
done
echo
say "the trees of the first test sentences"
logged "$log" fairseq-syntax look --constituents "$OUT/latent_tree_rnng.test.generated" --sentence 0 1 2 --draw "$OUT/trees"
echo
say "done; pictures: $OUT/trees, logs and outputs: $OUT/"
