# Settings shared by prepare.sh, train.sh, evaluate.sh and compare.sh; every one can be overridden from the environment.
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
: "${OUT:=outputs/sdatt}"           # models and translations are written below
: "${MULTI30K:=outputs/multi30k}"   # text, trees and data of ../multi30k
: "${SOURCE:=en}" "${TARGET:=de}"
: "${SIZE:=cpu}"                    # cpu: fits two cores; paper: the paper's size and optimiser, for a GPU
: "${BEAM:=5}"
DATA_BIN="$MULTI30K/data-bin"
TRANSFORMERS=(transformer sdatt_transformer dasa_transformer)

case "$SIZE" in
cpu)
    : "${MAX_EPOCH:=6}"
    TRANSFORMER_SIZE=cpu
    DEVICE=(--cpu)
    ;;
paper)
    : "${MAX_EPOCH:=60}"
    TRANSFORMER_SIZE=gpu # the paper has no Transformers
    DEVICE=()
    ;;
*)
    echo "settings.sh: SIZE=$SIZE: choose cpu or paper" >&2
    exit 2
    ;;
esac

# Options of the recurrent systems: RECURRENT. Not set above, for LR means another thing to the Transformers.
recurrent_options() {
    case "$SIZE" in
    cpu)
        # With the paper's way of starting parameters, half an hour is too short: they are nearly zero.
        RECURRENT=(--encoder-embed-dim 256 --decoder-embed-dim 256 --encoder-hidden-size 128 --decoder-hidden-size 256
            --share-all-embeddings --init-range 0.08 --criterion cross_entropy --optimizer adam --clip-norm 1.0
            --lr "${LR:-2e-3}" --lr-scheduler inverse_sqrt --warmup-updates "${WARMUP:-300}" --warmup-init-lr 1e-4
            --batch-size "${BATCH_SIZE:-64}")
        ;;
    paper)
        RECURRENT=("${PAPER_DIMENSIONS[@]}" "${PAPER_TRAINING[@]}" --lr "${LR:-1.0}" --batch-size "${BATCH_SIZE:-80}")
        ;;
    esac
}
