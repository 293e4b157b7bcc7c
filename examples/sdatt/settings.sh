# Every setting can be overridden from the environment.
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
: "${OUT:=outputs/sdatt}"           # models and translations are written below
: "${MULTI30K:=outputs/multi30k}"   # text, trees and data of ../multi30k
: "${SOURCE:=en}" "${TARGET:=de}"
: "${SIZE:=cpu}"                    # cpu: fits two cores; paper: the paper's size and optimiser, for a GPU
: "${BEAM:=5}"
DATA_BIN="$MULTI30K/data-bin"
SYSTEMS=("${PAPER_SYSTEMS[@]}") SPLITS=(valid test test1)

case "$SIZE" in
cpu)
    : "${MAX_EPOCH:=6}"
    # With the paper's way of starting parameters, half an hour is too short: they are nearly zero.
    OPTIONS=(--encoder-embed-dim 256 --decoder-embed-dim 256 --encoder-hidden-size 128 --decoder-hidden-size 256
        --share-all-embeddings --init-range 0.08 --criterion cross_entropy --optimizer adam --clip-norm 1.0
        --lr "${LR:-2e-3}" --lr-scheduler inverse_sqrt --warmup-updates "${WARMUP:-300}" --warmup-init-lr 1e-4
        --batch-size "${BATCH_SIZE:-64}")
    DEVICE=(--cpu)
    ;;
paper)
    : "${MAX_EPOCH:=60}"
    OPTIONS=("${PAPER_DIMENSIONS[@]}" "${PAPER_TRAINING[@]}" --lr "${LR:-1.0}" --batch-size "${BATCH_SIZE:-80}")
    DEVICE=()
    ;;
*) stop "SIZE=$SIZE: choose cpu or paper" ;;
esac

# The data of ../multi30k, unless they are there. Takes what is taken there: DATA, MERGES, STANZA_TAGGER, STANZA_PARSER.
prepare() {
    unless_there "$DATA_BIN/syntax-$SOURCE-$TARGET.json" \
        env OUT="$MULTI30K" SIZE=cpu SOURCE="$SOURCE" TARGET="$TARGET" bash "$EXAMPLES/recipe.sh" prepare multi30k
}

train() {
    check_system "${1:-}"
    there "$DATA_BIN" "run bash examples/recipe.sh prepare sdatt, or set MULTI30K"
    run mkdir -p "$OUT"
    run fairseq-train "$DATA_BIN" --user-dir "$USER_DIR" --arch "$1" "${OPTIONS[@]}" "${DEVICE[@]}" \
        --source-lang "$SOURCE" --target-lang "$TARGET" --max-epoch "$MAX_EPOCH" --seed "$SEED" --num-workers 0 \
        --log-format simple --log-interval 100 --no-epoch-checkpoints --save-dir "$OUT/checkpoints/$1-$SEED" \
        --log-file "$OUT/$1-$SEED.log" "${@:2}"
}

evaluate() {
    check_system "${1:-}"
    multi30k_evaluate "$MULTI30K/text" "$1" "${2:-test}" --max-tokens 4096
}

# BLEU beside global_att and, as in the paper, chen17 and global_plus_chen17, significance, and BLEU by source length
# of all systems that have been evaluated: compare [SPLIT] [options of fairseq-syntax compare]
compare() {
    local subset="${1:-test}" system systems=() baselines=() name
    check_split "$subset"
    for system in "${SYSTEMS[@]}"; do
        [[ -n "$DRY_RUN" || -s "$OUT/$system-$SEED.$subset.generated" ]] || continue
        systems+=(--system "$system" "$OUT/$system-$SEED.$subset.generated")
        [[ "$system" != global_att && "$system" != *chen17 ]] || baselines+=(--baseline "$system")
    done
    [[ "${systems[1]:-}" == global_att && ${#systems[@]} -gt 3 ]] ||
        fail "$subset: evaluate global_att and another system first"
    name="$OUT/comparison-$SEED.$subset"
    run_to "$name.txt" fairseq-syntax compare "${systems[@]}" "${baselines[@]}" \
        --reference "$MULTI30K/text/$subset.$TARGET" --source "$MULTI30K/text/$subset.$SOURCE" "${@:2}"
    [[ -n "$DRY_RUN" ]] || cat "$name.txt"
}
