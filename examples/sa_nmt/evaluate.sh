#!/usr/bin/env bash
# Translate a test set and score it: bash examples/sa_nmt/evaluate.sh ARCHITECTURE [test|test1|valid]
# The score is sacreBLEU against the tokenised, lower-cased references, hence --tokenize none.
source "$(dirname "$0")/settings.sh"
system="${1:?give an architecture: $SA_SYSTEMS}"
subset="${2:-test}"
check_system "$system"
name="$OUT/$PAIR-$system-$SEED.$subset"
run_to "$name.generated" \
    fairseq-generate "$DATA_BIN" --user-dir "$USER_DIR" "${DEVICE[@]}" \
    --source-lang "$SOURCE" --target-lang "$TARGET" --gen-subset "$subset" \
    --path "$OUT/checkpoints/$PAIR-$system-$SEED/checkpoint_best.pt" --beam "$BEAM" --batch-size 32 \
    --max-len-a 1.5 --max-len-b 10 --remove-bpe
hypotheses "$name.generated" "$name.hypotheses"
run_to "$name.bleu" sacrebleu "$OUT/text/$subset.$TARGET" --input "$name.hypotheses" --tokenize none --metrics bleu
[[ -n "$DRY_RUN" ]] || cat "$name.bleu"
