#!/usr/bin/env bash
# Train one system: bash examples/lgp/train.sh SYSTEM [options of fairseq-train]
#   SYSTEM: seq, lgp, lgp_plus (after pretrain.sh), dep or uni
# Interrupted? The same command goes on where it stopped.
source "$(dirname "$0")/settings.sh"
train "$@"
