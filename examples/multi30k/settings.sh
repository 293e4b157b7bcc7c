# Settings shared by prepare.sh, train.sh and evaluate.sh; every one can be overridden from the environment.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
: "${OUT:=outputs/multi30k}"        # everything is written below
: "${SOURCE:=en}" "${TARGET:=de}"
: "${MERGES:=8000}"                 # joint BPE merges
: "${PASCAL_HEADS:=2}" "${PARENT_IGNORING:=0.1}"
: "${SIZE:=cpu}"                    # cpu: the small model of the leaderboard; gpu: the usual Multi30k model
: "${BEAM:=5}"
: "${WORKERS:=2}"

case "$SIZE" in
cpu)
    : "${MAX_EPOCH:=60}" "${MAX_TOKENS:=4096}" "${LR:=5e-3}" "${WARMUP:=2000}"
    DIMENSIONS=(--encoder-layers 4 --decoder-layers 4 --encoder-embed-dim 128 --decoder-embed-dim 128
        --encoder-ffn-embed-dim 256 --decoder-ffn-embed-dim 256 --encoder-attention-heads 4
        --decoder-attention-heads 4)
    DEVICE=(--cpu)
    ;;
gpu)
    : "${MAX_EPOCH:=60}" "${MAX_TOKENS:=4096}" "${LR:=7e-4}" "${WARMUP:=2000}"
    DIMENSIONS=(--encoder-layers 6 --decoder-layers 6 --encoder-embed-dim 256 --decoder-embed-dim 256
        --encoder-ffn-embed-dim 1024 --decoder-ffn-embed-dim 1024 --encoder-attention-heads 4
        --decoder-attention-heads 4)
    DEVICE=(--fp16)
    ;;
*)
    echo "settings.sh: SIZE=$SIZE: choose cpu or gpu" >&2
    exit 2
    ;;
esac
