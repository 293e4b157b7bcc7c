#!/usr/bin/env bash
# Train one system: bash examples/multi30k/train.sh SYSTEM [options of fairseq-train]
#   SYSTEM: transformer, pascal, lisa, tag, multitask, sdatt_transformer or dasa_transformer
# Interrupted? The same command goes on where it stopped, to the same numbers.
source "$(dirname "$0")/settings.sh"
system="${1:?give a system: $SYSTEMS}"
shift
system_options "$system" iwslt_de_en "$PASCAL_HEADS" "$PARENT_IGNORING" "$OUT/data-bin"
run fairseq-train "$DATA_BIN" --user-dir "$USER_DIR" "${ARCH[@]}" "${DIMENSIONS[@]}" "${SHARING[@]}" "${DEVICE[@]}" \
    --source-lang "$SOURCE" --target-lang "$TARGET" --criterion "$CRITERION" --label-smoothing 0.1 \
    --dropout 0.3 --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 1.0 --lr "$LR" \
    --lr-scheduler inverse_sqrt --warmup-updates "$WARMUP" --max-tokens "$MAX_TOKENS" --max-epoch "$MAX_EPOCH" \
    --seed "$SEED" --num-workers 0 --log-format simple --log-interval 100 --no-epoch-checkpoints \
    --save-dir "$OUT/checkpoints/$system-$SEED" --log-file "$OUT/$system-$SEED.log" "$@"
