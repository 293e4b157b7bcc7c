#!/usr/bin/env bash
# Translate test (or dev: valid) and score it, BLEU of the words of KyTea, as at WAT:
#   bash examples/pascal_wat/evaluate.sh SYSTEM [test|valid]
# RIBES and significance: fairseq-syntax-compare, see README.md beside this file.
source "$(dirname "$0")/settings.sh"

# instead of detokenised text and a test set of sacreBLEU: score NAME SPLIT
score() {
    local -a segment
    read -ra segment <<< "$SEGMENT_JA"
    hypotheses "$1.generated" "$1.hypotheses"
    run_filter "$1.hypotheses" "$1.$TARGET" tr -d ' '
    run_filter "$1.$TARGET" "$1.words" "${segment[@]}"
    run_filter "$TEXT/$2.raw.$TARGET" "$OUT/$2.words" "${segment[@]}"
    run_to "$1.bleu" sacrebleu "$OUT/$2.words" --input "$1.words" --tokenize none --metrics bleu
    [[ -n "$DRY_RUN" ]] || cat "$1.bleu"
}

evaluate "$@"
