# Settings shared by prepare.sh, train.sh and evaluate.sh; every one can be overridden from the environment.
set -euo pipefail
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
: "${USER_DIR:=$ROOT/fairseq_syntax}"
: "${OUT:=outputs/multi30k}"        # everything is written below
: "${SOURCE:=en}" "${TARGET:=de}"
: "${MERGES:=8000}"                 # joint BPE merges
: "${SIZE:=cpu}"                    # cpu: fits two cores, about 3 minutes an epoch; gpu: the usual Multi30k model
: "${SEED:=1}"
: "${BEAM:=5}"
: "${DRY_RUN:=}"                    # set to print commands instead of running them
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

# Print a command; run it unless DRY_RUN is set.
run() {
    printf '+ %s\n' "$(printf '%q ' "$@")" >&2
    [[ -n "$DRY_RUN" ]] || "$@"
}

case "$SIZE" in
cpu)
    : "${MAX_EPOCH:=10}" "${MAX_TOKENS:=2048}" "${LR:=1e-3}" "${WARMUP:=800}"
    DIMENSIONS=(--encoder-layers 3 --decoder-layers 3 --encoder-embed-dim 256 --decoder-embed-dim 256
        --encoder-ffn-embed-dim 1024 --decoder-ffn-embed-dim 1024 --encoder-attention-heads 4
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

# System -> options of fairseq-train beyond the shared ones; all have the same size and budget.
system_options() {
    ARCH=() CRITERION=label_smoothed_cross_entropy DATA_BIN="$OUT/data-bin"
    SHARING=(--share-all-embeddings)
    case "$1" in
    transformer) ARCH=(--arch transformer_iwslt_de_en) ;;
    pascal) ARCH=(--arch pascal_transformer_iwslt_de_en --encoder-pascal-heads 2 0 0 --parent-ignoring 0.1) ;;
    lisa)
        ARCH=(--arch lisa_transformer_iwslt_de_en)
        CRITERION=label_smoothed_cross_entropy_with_heads
        ;;
    tag)
        ARCH=(--arch tag_transformer_iwslt_de_en)
        SHARING=(--share-decoder-input-output-embed) # source embeddings are narrower
        ;;
    multitask)
        ARCH=(--arch transformer_iwslt_de_en)
        DATA_BIN="$OUT/data-bin-multitask"
        ;;
    *)
        echo "system $1: choose transformer, pascal, lisa, tag or multitask" >&2
        exit 2
        ;;
    esac
}
