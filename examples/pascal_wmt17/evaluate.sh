#!/usr/bin/env bash
# Translate newstest2017 (test) or newstest2016 (valid) and score it: bash examples/pascal_wmt17/evaluate.sh SYSTEM [test|valid]
source "$(dirname "$0")/settings.sh"
evaluate "$@"
