#!/usr/bin/env bash
# Translate the test set (test1: devtest, valid: dev) and score it, BLEU and perplexity:
#   bash examples/aspec/evaluate.sh SYSTEM [test|test1|valid]
#   AVERAGED=1: with the mean of checkpoints;  PRIOR=off: without the probability of lengths, auto: with smoothed
#   ones;
#   COPY_UNKNOWN=1: unknown words are copied from the source
source "$(dirname "$0")/settings.sh"
evaluate "$@"
