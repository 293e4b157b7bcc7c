#!/usr/bin/env bash
# Translate a test set and score it: bash examples/sa_nmt/evaluate.sh ARCHITECTURE [test|test1|valid]
source "$(dirname "$0")/settings.sh"
system="${1:?give an architecture: $SA_SYSTEMS}"
subset="${2:-test}"
check_system "$system"
multi30k_evaluate "$OUT/text" "$PAIR-$system" "$subset" --batch-size 32
