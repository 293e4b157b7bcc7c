#!/usr/bin/env bash
# Translate newstest2016 (test) or newstest2015 (valid) and score it: bash examples/wmt16/evaluate.sh SYSTEM [test|valid]
source "$(dirname "$0")/settings.sh"
evaluate "$@"
