# Settings shared by prepare.sh, train.sh, evaluate.sh and trees.sh; every one can be overridden from the environment.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
: "${OUT:=outputs/latent_tree}"     # everything is written below
: "${SOURCE:=de}" "${TARGET:=en}"
: "${SIZE:=cpu}"                    # cpu: fits two cores; paper: the paper's size and batch
: "${WORKERS:=2}"
: "${LR:=1e-3}"
: "${TOKENIZE:=13a}"                # of sacreBLEU; none for text that is in tokens already
DATA_BIN="$OUT/data-bin"
SYSTEMS="latent, shallow, paper, pf, literal, flat, words, no_reward, no_coverage, head, char_lstm or lstm"

case "$SIZE" in
cpu)
    : "${MAX_EPOCH:=6}" "${BATCH_SIZE:=32}" "${HIDDEN:=128}"
    DEVICE=(--cpu)
    ;;
paper)
    : "${MAX_EPOCH:=12}" "${BATCH_SIZE:=10}" "${HIDDEN:=384}"
    DEVICE=()
    ;;
*)
    echo "settings.sh: SIZE=$SIZE: choose cpu or paper" >&2
    exit 2
    ;;
esac

# System -> options of fairseq-train that make it: system_options SYSTEM
#   SYSTEM_OPTIONS: those;  TASK: options of the task, also for fairseq-generate
system_options() {
    local trees=(--arch latent_tree_rnng --rnng-size "$HIDDEN" --criterion reinforce_tree)
    local lstm=(--encoder-layers 2 --decoder-layers 2 --encoder-embed-dim "$HIDDEN" --decoder-embed-dim "$HIDDEN"
        --decoder-hidden-size "$HIDDEN" --dropout 0.1 --criterion cross_entropy --eval-bleu-detok syntax_char)
    TASK=(--task tree_translation)
    case "$1" in
    latent) SYSTEM_OPTIONS=("${trees[@]}") ;;
    shallow | paper | pf | literal) SYSTEM_OPTIONS=("${trees[@]}" --tree-preset "$1") ;;
    # the policy must learn the trees that are given: it builds them alone when it translates
    flat | words) SYSTEM_OPTIONS=("${trees[@]}" --forced-trees "$1" --action-xent 1) ;;
    no_reward) SYSTEM_OPTIONS=("${trees[@]}" --policy-weight 0) ;;
    no_coverage) SYSTEM_OPTIONS=("${trees[@]}" --coverage-weight 0) ;;
    head) SYSTEM_OPTIONS=("${trees[@]}" --policy-grad head) ;;
    # both directions together are of the size
    char_lstm)
        TASK=()
        SYSTEM_OPTIONS=(--arch char_lstm "${lstm[@]}" --encoder-hidden-size "$((HIDDEN / 2))")
        ;;
    lstm)
        TASK=()
        SYSTEM_OPTIONS=(--arch lstm "${lstm[@]}" --encoder-hidden-size "$HIDDEN" --decoder-out-embed-dim "$HIDDEN")
        ;;
    *)
        echo "system $1: choose $SYSTEMS" >&2
        exit 2
        ;;
    esac
}

# Stop unless it is a split to translate: check_subset SPLIT
check_subset() {
    if [[ ! " valid test test1 " =~ " $1 " ]]; then
        echo "$(basename "$0"): no split $1: choose test, test1 or valid" >&2
        exit 2
    fi
}
