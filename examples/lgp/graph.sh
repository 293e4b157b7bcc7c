#!/usr/bin/env bash
# How near the graphs of a system, or the trees of the parser, are to the development set of the treebank, and a picture:
#   bash examples/lgp/graph.sh lgp|lgp_plus|parser [options of fairseq-syntax-attachment]
#   SENTENCE: number of the sentence to draw;  AVERAGED=1: of the mean of checkpoints
source "$(dirname "$0")/settings.sh"
graph "$@"
