# Settings shared by prepare.sh, train.sh, evaluate.sh and trees.sh; every one can be overridden from the environment.
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
: "${OUT:=outputs/sa_nmt}"          # everything is written below
: "${SOURCE:=en}" "${TARGET:=de}"   # or the other way round: one data directory serves both
: "${MERGES:=5000}"                 # BPE merges of each language; the paper does not join them
: "${SIZE:=cpu}"                    # cpu: fits two cores; paper: the paper's size and batch
: "${BEAM:=5}"
: "${WORKERS:=2}"
PAIR="$SOURCE-$TARGET"
DATA_BIN="$OUT/data-bin"

case "$SIZE" in
cpu)
    : "${MAX_EPOCH:=10}" "${BATCH_SIZE:=64}"
    DIMENSIONS=(--encoder-embed-dim 256 --encoder-hidden-size 128 --decoder-embed-dim 256 --decoder-hidden-size 256
        --init-range 0.08)
    DEVICE=(--cpu)
    ;;
paper)
    : "${MAX_EPOCH:=100}" "${BATCH_SIZE:=32}"
    DIMENSIONS=()
    DEVICE=()
    ;;
*)
    echo "settings.sh: SIZE=$SIZE: choose cpu or paper" >&2
    exit 2
    ;;
esac
