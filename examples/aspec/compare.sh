#!/usr/bin/env bash
# BLEU, RIBES and significance beside seq, and BLEU by source length with a picture, of all systems that have been
# evaluated: bash examples/aspec/compare.sh [test|test1|valid] [options of fairseq-syntax-compare]
#   AVERAGED, PRIOR, COPY_UNKNOWN: of the translations to compare, as for evaluate.sh
source "$(dirname "$0")/settings.sh"
compare "$@"
