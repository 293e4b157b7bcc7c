#!/usr/bin/env bash
# Translate a test set and score it: bash examples/sdatt/evaluate.sh SYSTEM [test|test1|valid]
# The score is sacreBLEU against the tokenised, lower-cased references, hence --tokenize none.
source "$(dirname "$0")/settings.sh"
system="${1:?give a system: ${PAPER_SYSTEMS[*]} ${TRANSFORMERS[*]}}"
subset="${2:-test}"
check_system "$system" "${PAPER_SYSTEMS[@]}" "${TRANSFORMERS[@]}"
name="$OUT/$system-$SEED.$subset"
run_to "$name.generated" \
    fairseq-generate "$DATA_BIN" --user-dir "$USER_DIR" "${DEVICE[@]}" \
    --source-lang "$SOURCE" --target-lang "$TARGET" --gen-subset "$subset" \
    --path "$OUT/checkpoints/$system-$SEED/checkpoint_best.pt" --beam "$BEAM" --max-tokens 4096 \
    --max-len-a 1.5 --max-len-b 10 --remove-bpe
hypotheses "$name.generated" "$name.hypotheses"
run_to "$name.bleu" sacrebleu "$MULTI30K/text/$subset.$TARGET" --input "$name.hypotheses" --tokenize none --metrics bleu
[[ -n "$DRY_RUN" ]] || cat "$name.bleu"
