# Settings shared by the scripts of this folder; every one can be overridden from the environment, and so can those of
# `settle` in ../lgp/training.sh. Numbers are those of Hashimoto & Tsuruoka (2017), Sec. 4, unless said otherwise.
source "$(dirname "${BASH_SOURCE[0]}")/../lgp/training.sh"
: "${OUT:=outputs/aspec}"           # everything is written below, text and models to a folder for each SIZE
: "${SOURCE:=en}" "${TARGET:=ja}"
: "${SIZE:=small}"                  # small, medium or large
: "${LOWERCASE=}"                   # the text has capitals
: "${FIRST_PAIRS:=1500000}"         # of the training text; then those of at most MAX_WORDS words, and of these PAIRS
: "${MAX_WORDS:=50}"
: "${DEP_FIRST_K:=all}"
: "${DEVICE_OPTION:=}"              # --cpu, to try things out
SPLITS=(valid test test1)           # dev, test, devtest
WORK="$OUT/$SIZE"
read -ra DEVICE <<< "$DEVICE_OPTION"

case "$SIZE" in
small)
    : "${PAIRS:=20000}"
    ;;
medium)
    : "${PAIRS:=100000}" "${FIRST_K:=all}"
    ;;
large)
    : "${PAIRS:=all}" "${FIRST_K:=all}" "${MIN_FREQUENCY:=3}" "${MIN_FREQUENCY_TARGET:=5}" "${NOISE:=2500}"
    : "${MOMENTUM:=0.70}" "${HALVE_AFTER:=0}" "${BEAM:=50}" "${BATCH_GENERATE:=16}"
    : "${PARSES:=none}"             # the paper has no dep of this size
    : "${MAX_EPOCH:=40}"            # half epochs; ours
    ;;
*)
    echo "settings.sh: SIZE=$SIZE: choose small, medium or large" >&2
    exit 2
    ;;
esac
: "${ARCH:=lgp_$SIZE}"
settle
