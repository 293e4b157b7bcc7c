#!/usr/bin/env bash
# Train one system: bash examples/sa_nmt/train.sh ARCHITECTURE [options of fairseq-train]
#   ARCHITECTURE: nmt_lstm, fa_nmt, fa_nmt_shared, sa_nmt, sa_nmt_shared, sa_nmt_hard or sa_nmt_1set
# The learning rate is halved whenever the validation loss is no better than its best, and training ends with the fifth
# time (Tran & Bisk 2018, Sec. 4.3) or after MAX_EPOCH. Interrupted? The same command goes on where it stopped.
source "$(dirname "$0")/settings.sh"
system="${1:?give an architecture: $SA_SYSTEMS}"
shift
check_system "$system"
run fairseq-train "$DATA_BIN" --user-dir "$USER_DIR" --arch "$system" "${DIMENSIONS[@]}" "${DEVICE[@]}" \
    --source-lang "$SOURCE" --target-lang "$TARGET" "${SA_TRAINING[@]}" --batch-size "$BATCH_SIZE" \
    --max-epoch "$MAX_EPOCH" --seed "$SEED" --num-workers 0 \
    --save-dir "$OUT/checkpoints/$PAIR-$system-$SEED" --log-file "$OUT/$PAIR-$system-$SEED.log" "$@"
