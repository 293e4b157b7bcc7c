#!/usr/bin/env bash
# Average the checkpoints of a system; which ones, BLEU of the validation set says:
#   bash examples/aspec/average.sh SYSTEM [options of fairseq-syntax-average]
source "$(dirname "$0")/settings.sh"
average "$@"
