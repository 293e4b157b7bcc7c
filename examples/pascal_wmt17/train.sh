#!/usr/bin/env bash
# Train one system: bash examples/pascal_wmt17/train.sh SYSTEM [options of fairseq-train]
#   SYSTEM: transformer, pascal, lisa, tag, multitask, sdatt_transformer or dasa_transformer
# Interrupted? The same command goes on where it stopped.
source "$(dirname "$0")/settings.sh"
train "$@"
