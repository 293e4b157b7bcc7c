#!/usr/bin/env bash
# Translate the test set and score it, BLEU and perplexity: bash examples/lgp/evaluate.sh SYSTEM [test|valid]
#   AVERAGED=1: with the mean of checkpoints;  PRIOR=raw or auto: with the probability of lengths, counted or smoothed;
#   COPY_UNKNOWN=1: unknown words are copied from the source
source "$(dirname "$0")/settings.sh"
evaluate "$@"
