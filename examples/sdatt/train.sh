#!/usr/bin/env bash
# Train one system: bash examples/sdatt/train.sh SYSTEM [options of fairseq-train]
#   SYSTEM, recurrent: global_att, local_att, flexible_att, chen17, sdatt, or global_plus_ and local, flexible, chen17 or
#   sdatt;  Transformers: transformer, sdatt_transformer, dasa_transformer
# Interrupted? The same command goes on where it stopped, to the same numbers.
source "$(dirname "$0")/settings.sh"
system="${1:?give a system: ${PAPER_SYSTEMS[*]} ${TRANSFORMERS[*]}}"
shift
check_system "$system" "${PAPER_SYSTEMS[@]}" "${TRANSFORMERS[@]}"
there "$DATA_BIN" "run bash examples/sdatt/prepare.sh, or set MULTI30K"
files=(--save-dir "$OUT/checkpoints/$system-$SEED" --log-file "$OUT/$system-$SEED.log")
run mkdir -p "$OUT"
if [[ "$system" == *transformer ]]; then
    # a system of ../multi30k, which is trained as it is there, but for the number of epochs
    OUT="$MULTI30K" SIZE="$TRANSFORMER_SIZE" MAX_EPOCH="$MAX_EPOCH" SOURCE="$SOURCE" TARGET="$TARGET" SEED="$SEED" \
        bash "$ROOT/examples/multi30k/train.sh" "$system" "${files[@]}" "$@"
else
    recurrent_options
    run fairseq-train "$DATA_BIN" --user-dir "$USER_DIR" --arch "$system" "${RECURRENT[@]}" "${DEVICE[@]}" \
        --source-lang "$SOURCE" --target-lang "$TARGET" --max-epoch "$MAX_EPOCH" --seed "$SEED" --num-workers 0 \
        --log-format simple --log-interval 100 --no-epoch-checkpoints "${files[@]}" "$@"
fi
