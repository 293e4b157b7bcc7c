#!/usr/bin/env bash
# A step of a recipe: bash examples/recipe.sh VERB RECIPE [arguments]
#   prepare RECIPE [STEP]                              text, trees and binarized data; STEPs are those of the recipe
#   train RECIPE SYSTEM [options of fairseq-train]     interrupted? repeat the command to resume
#   evaluate RECIPE SYSTEM [SPLIT]                     translate a split (default: test) and score it
#   compare RECIPE [SPLIT] [options]                   everything that has been evaluated, beside a baseline
#   pretrain | average | graph | trees                 what lgp, aspec, sa_nmt and latent_tree have besides
# RECIPE is a folder beside this file. Its settings.sh says which variables there are and what they are by default, and its
# README.md what to expect. DRY_RUN=1 prints the commands instead of running them.
set -euo pipefail
VERBS=(prepare pretrain train average evaluate compare graph trees)
VERB="${1:-}" RECIPE="${2:-}"
folder="$(dirname "${BASH_SOURCE[0]}")"
if [[ " ${VERBS[*]} " != *" $VERB "* || -z "$VERB" ]]; then
    echo "recipe.sh: give a verb: ${VERBS[*]}${VERB:+, not $VERB}" >&2
    exit 2
elif [[ -z "$RECIPE" || ! -f "$folder/$RECIPE/settings.sh" ]]; then
    recipes=("$folder"/*/settings.sh)
    recipes=("${recipes[@]%/settings.sh}")
    echo "recipe.sh $VERB: give a recipe: ${recipes[*]##*/}${RECIPE:+, not $RECIPE}" >&2
    exit 2
fi
# shellcheck source=/dev/null
source "$folder/$RECIPE/settings.sh"
declare -F "$VERB" > /dev/null || stop "this recipe does not $VERB"
"$VERB" "${@:3}"
