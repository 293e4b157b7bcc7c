#!/usr/bin/env bash
# Translate a test set and score it: bash examples/sdatt/evaluate.sh SYSTEM [test|test1|valid]
source "$(dirname "$0")/settings.sh"
system="${1:?give a system: ${PAPER_SYSTEMS[*]} ${TRANSFORMERS[*]}}"
subset="${2:-test}"
check_system "$system" "${PAPER_SYSTEMS[@]}" "${TRANSFORMERS[@]}"
multi30k_evaluate "$MULTI30K/text" "$system" "$subset" --max-tokens 4096
