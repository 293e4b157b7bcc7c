#!/usr/bin/env bash
# Train the parser on FIRST_K sentences of the treebank, for lgp_plus, seq_plus, …: bash examples/aspec/pretrain.sh [options
# of fairseq-train]. Interrupted? The same command goes on where it stopped.
source "$(dirname "$0")/settings.sh"
pretrain "$FIRST_K" "$@"
