#!/usr/bin/env bash
# Translate a test set and score it: bash examples/multi30k/evaluate.sh SYSTEM [test|test1|valid]
# The score is sacreBLEU against the tokenised, lower-cased references, hence --tokenize none.
source "$(dirname "$0")/settings.sh"
system="${1:?give a system: $SYSTEMS}"
subset="${2:-test}"
system_options "$system" iwslt_de_en "$PASCAL_HEADS" "$PARENT_IGNORING" "$OUT/data-bin"
name="$OUT/$system-$SEED.$subset"
run_to "$name.generated" \
    fairseq-generate "$DATA_BIN" --user-dir "$USER_DIR" "${DEVICE[@]}" \
    --source-lang "$SOURCE" --target-lang "$TARGET" --gen-subset "$subset" \
    --path "$OUT/checkpoints/$system-$SEED/checkpoint_best.pt" --beam "$BEAM" --max-tokens 4096 \
    --max-len-a 1.5 --max-len-b 10 --remove-bpe
hypotheses "$name.generated" "$name.hypotheses"
run_to "$name.bleu" sacrebleu "$OUT/text/$subset.$TARGET" --input "$name.hypotheses" --tokenize none --metrics bleu
[[ -n "$DRY_RUN" ]] || cat "$name.bleu"
