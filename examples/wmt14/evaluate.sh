#!/usr/bin/env bash
# Translate newstest2013 (test), 2014 (test1), 2015 (test2) or 2012 (valid) and score it:
#   bash examples/wmt14/evaluate.sh SYSTEM [test|test1|test2|valid]
source "$(dirname "$0")/settings.sh"
system="${1:?give a system: ${PAPER_SYSTEMS[*]}}"
subset="${2:-test}"
check_system "$system" "${PAPER_SYSTEMS[@]}"
name="$OUT/$PAIR-$system-$SEED.$subset"
set_there="$(newstest "$subset")" # is there such a split?
run_to "$name.generated" fairseq-generate "$DATA" --user-dir "$USER_DIR" "${PRECISION_OPTIONS[@]}" \
    --source-lang "$SOURCE" --target-lang "$TARGET" --gen-subset "$subset" \
    --path "$OUT/checkpoints/$PAIR-$system-$SEED/checkpoint_best.pt" --beam "$BEAM" --lenpen "$LENPEN" \
    --max-tokens 4096 --remove-bpe
score "$name" "$subset"
# regardless of letter case, as in the paper
run_to "$name.lc.bleu" sacrebleu -t "$set_there" -l "$PAIR" --input "$name.$TARGET" --metrics bleu --lowercase
[[ -n "$DRY_RUN" ]] || cat "$name.lc.bleu"
