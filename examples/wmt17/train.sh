#!/usr/bin/env bash
# Train one system: bash examples/wmt17/train.sh ARCHITECTURE [options of fairseq-train]
#   ARCHITECTURE: nmt_lstm, fa_nmt, fa_nmt_shared, sa_nmt, sa_nmt_shared, sa_nmt_hard or sa_nmt_1set
# Sizes are the defaults of the architectures. Interrupted? The same command goes on with the part where it stopped.
source "$(dirname "$0")/settings.sh"
system="${1:?give an architecture: $SA_SYSTEMS}"
shift
check_system "$system"
if ((BATCH_SIZE % GPUS)); then
    echo "train.sh: BATCH_SIZE=$BATCH_SIZE sentences cannot be shared equally by GPUS=$GPUS" >&2
    exit 2
fi
command=(fairseq-train) world=(--distributed-world-size "$GPUS")
[[ -n "$LAUNCH" ]] && read -ra command <<< "$LAUNCH" && world=()
run "${command[@]}" "$DATA" --user-dir "$USER_DIR" --arch "$system" "${SA_TRAINING[@]}" \
    --source-lang "$SOURCE" --target-lang "$TARGET" --batch-size $((BATCH_SIZE / GPUS)) "${world[@]}" \
    --epoch-parts "$EPOCH_PARTS" "${PRECISION_OPTIONS[@]}" --seed "$SEED" \
    --save-dir "$OUT/checkpoints/$PAIR-$system-$SEED" --log-file "$OUT/$PAIR-$system-$SEED.log" "$@"
