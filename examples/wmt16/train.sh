#!/usr/bin/env bash
# Train one system: bash examples/wmt16/train.sh {transformer,pascal,lisa,tag,multitask} [options of fairseq-train]
# Interrupted? The same command goes on where it stopped.
source "$(dirname "$0")/settings.sh"
train "$@"
