#!/usr/bin/env bash
# Translate newstest2016 (test), newstest2017 (test1) or newstest2015 (valid) and score it:
#   bash examples/wmt17/evaluate.sh ARCHITECTURE [test|test1|valid]
source "$(dirname "$0")/settings.sh"
system="${1:?give an architecture: $SA_SYSTEMS}"
subset="${2:-test}"
check_system "$system"
newstest "$subset" > /dev/null # is there such a split?
name="$OUT/$PAIR-$system-$SEED.$subset"
run_to "$name.generated" fairseq-generate "$DATA" --user-dir "$USER_DIR" "${PRECISION_OPTIONS[@]}" \
    --source-lang "$SOURCE" --target-lang "$TARGET" --gen-subset "$subset" \
    --path "$OUT/checkpoints/$PAIR-$system-$SEED/checkpoint_best.pt" --beam "$BEAM" --lenpen "$LENPEN" \
    --max-tokens 4096 --remove-bpe
score "$name" "$subset"
# what multi-bleu.perl, the paper's script, computes: BLEU of the tokens
run_to "$name.tokens.bleu" sacrebleu "$TEXT/$subset.$TARGET" --input "$name.hypotheses" --tokenize none --metrics bleu
[[ -n "$DRY_RUN" ]] || cat "$name.tokens.bleu"
