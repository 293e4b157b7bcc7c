#!/usr/bin/env bash
# Translate a test set and score it: bash examples/multi30k/evaluate.sh SYSTEM [test|test1|valid]
source "$(dirname "$0")/settings.sh"
system="${1:?give a system: $SYSTEMS}"
subset="${2:-test}"
system_options "$system" iwslt_de_en "$PASCAL_HEADS" "$PARENT_IGNORING" "$OUT/data-bin"
multi30k_evaluate "$OUT/text" "$system" "$subset" --max-tokens 4096
