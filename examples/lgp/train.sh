#!/usr/bin/env bash
# Train one system: bash examples/lgp/train.sh SYSTEM [options of fairseq-train]
#   SYSTEM: seq, lgp, dep or uni; after pretrain.sh also seq_plus, lgp_plus, dep_plus or uni_plus, which start from the
#   parser or, with PARSER_PARTS, from a part of it
# Interrupted? The same command goes on where it stopped.
source "$(dirname "$0")/settings.sh"
train "$@"
