#!/usr/bin/env bash
# Text, trees and data of Multi30k, which are those of ../multi30k: bash examples/sdatt/prepare.sh
# Takes what ../multi30k/prepare.sh takes: DATA, MERGES, STANZA_TAGGER, STANZA_PARSER. If that has run, nothing is to do.
source "$(dirname "$0")/settings.sh"
if [[ -s "$DATA_BIN/syntax-$SOURCE-$TARGET.json" ]]; then
    echo "= $DATA_BIN is there" >&2
else
    OUT="$MULTI30K" SIZE="$TRANSFORMER_SIZE" bash "$ROOT/examples/multi30k/prepare.sh"
fi
