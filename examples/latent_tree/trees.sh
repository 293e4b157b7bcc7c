#!/usr/bin/env bash
# What trees a system has built of a set that evaluate.sh has translated, in numbers and as pictures:
#   bash examples/latent_tree/trees.sh SYSTEM [test|test1|valid]
#   IDS   numbers of the sentences to draw
source "$(dirname "$0")/settings.sh"
: "${IDS:=0 1 2 3}"
system="${1:?give a system: $SYSTEMS}"
subset="${2:-test}"
system_options "$system"
check_subset "$subset"
if [[ ${#TASK[@]} -eq 0 ]]; then
    echo "trees.sh: $system builds no trees" >&2
    exit 2
fi
name="$OUT/$system-$SEED.$subset"
there "$name.trees" "run bash examples/latent_tree/evaluate.sh $system $subset"
read -ra ids <<< "$IDS"
run_to "$name.stats" fairseq-syntax-constituents stats "$name.trees"
[[ -n "$DRY_RUN" ]] || cat "$name.stats"
run fairseq-syntax-constituents draw "$name.trees" --ids "${ids[@]}" --output "$name.trees.d" --overwrite
