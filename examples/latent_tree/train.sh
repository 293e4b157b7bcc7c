#!/usr/bin/env bash
# Train one system: bash examples/latent_tree/train.sh SYSTEM [options of fairseq-train]
#   SYSTEM: latent, shallow, paper or pf (trees that are found, four sets of weights), flat or words (trees that are
#   given), no_reward, no_coverage or head (latent, with less), char_lstm or lstm (no trees)
# After each epoch the validation set is translated; the model with the best BLEU is kept. Interrupted? The same command
# goes on where it stopped.
source "$(dirname "$0")/settings.sh"
system="${1:?give a system: $SYSTEMS}"
shift
system_options "$system"
there "$DATA_BIN" "run bash examples/latent_tree/prepare.sh"
run fairseq-train "$DATA_BIN" --user-dir "$USER_DIR" "${TASK[@]}" "${SYSTEM_OPTIONS[@]}" "${DEVICE[@]}" \
    --source-lang "$SOURCE" --target-lang "$TARGET" --optimizer adam --lr "$LR" --lr-scheduler fixed --clip-norm 5.0 \
    --batch-size "$BATCH_SIZE" --required-batch-size-multiple 1 --max-epoch "$MAX_EPOCH" --seed "$SEED" --num-workers 0 \
    --eval-bleu --eval-bleu-args '{"beam": 1, "max_len_a": 1.5, "max_len_b": 30}' \
    --best-checkpoint-metric bleu --maximize-best-checkpoint-metric \
    --log-format simple --log-interval 100 --no-epoch-checkpoints \
    --save-dir "$OUT/checkpoints/$system-$SEED" --log-file "$OUT/$system-$SEED.log" "$@"
