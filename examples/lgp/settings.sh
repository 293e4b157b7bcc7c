# Settings shared by the scripts of this folder; every one can be overridden from the environment, and so can those of
# `settle` in training.sh.
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
: "${OUT:=outputs/lgp}"             # everything is written below, text and models to a folder for each PAIRS
: "${SOURCE:=en}" "${TARGET:=ja}"
: "${PAIRS:=10000}"                 # the first pairs of the training text, of 50000
: "${SIZE:=cpu}"                    # cpu: fits two cores; paper: the paper's loss and more epochs, for a GPU
: "${LOWERCASE=1}"                  # the text is lower-cased, so the parser has to read the treebank so, too
SPLITS=(valid test)
WORK="$OUT/$PAIRS"

case "$SIZE" in
cpu)
    : "${CRITERION:=cross_entropy}" # faster, and learns more in few epochs, with so few words
    : "${MAX_EPOCH:=20}"            # half epochs
    : "${PRIOR:=off}"               # it lowers BLEU here (docs/results.md)
    : "${PARSE_DEVICE:=cpu}"
    DEVICE=(--cpu)
    ;;
paper)
    DEVICE=()
    ;;
*)
    echo "settings.sh: SIZE=$SIZE: choose cpu or paper" >&2
    exit 2
    ;;
esac
settle
