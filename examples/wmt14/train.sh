#!/usr/bin/env bash
# Train one system: bash examples/wmt14/train.sh SYSTEM [options of fairseq-train]
#   SYSTEM: global_att, local_att, flexible_att, chen17, sdatt, or global_plus_ and local, flexible, chen17 or sdatt
# Sizes are the defaults of the architectures. Interrupted? The same command goes on where it stopped.
source "$(dirname "$0")/settings.sh"
system="${1:?give a system: ${PAPER_SYSTEMS[*]}}"
shift
check_system "$system" "${PAPER_SYSTEMS[@]}"
if ((BATCH_SIZE % GPUS)); then
    echo "train.sh: BATCH_SIZE=$BATCH_SIZE sentences cannot be shared equally by GPUS=$GPUS" >&2
    exit 2
fi
command=(fairseq-train) world=(--distributed-world-size "$GPUS")
[[ -n "$LAUNCH" ]] && read -ra command <<< "$LAUNCH" && world=()
run "${command[@]}" "$DATA" --user-dir "$USER_DIR" --arch "$system" "${PAPER_DIMENSIONS[@]}" "${PAPER_TRAINING[@]}" \
    --lr "$LR" --source-lang "$SOURCE" --target-lang "$TARGET" --batch-size $((BATCH_SIZE / GPUS)) "${world[@]}" \
    --max-update "$MAX_UPDATE" "${PRECISION_OPTIONS[@]}" --seed "$SEED" --log-format simple --log-interval 100 \
    --save-interval-updates "$SAVE_UPDATES" --keep-interval-updates 1 --no-epoch-checkpoints \
    --save-dir "$OUT/checkpoints/$PAIR-$system-$SEED" --log-file "$OUT/$PAIR-$system-$SEED.log" "$@"
