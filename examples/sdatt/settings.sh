# Every setting can be overridden from the environment.
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
: "${OUT:=outputs/sdatt}"           # models and translations are written below
: "${MULTI30K:=outputs/multi30k}"   # text, trees and data of ../multi30k
: "${SOURCE:=en}" "${TARGET:=de}"
: "${SIZE:=cpu}"                    # cpu: fits two cores; paper: the paper's size and optimiser, for a GPU
: "${BEAM:=5}"
DATA_BIN="$MULTI30K/data-bin"
TRANSFORMERS=(transformer dasa_transformer)
SYSTEMS=("${PAPER_SYSTEMS[@]}" "${TRANSFORMERS[@]}") SPLITS=(valid test test1)

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
*) stop "SIZE=$SIZE: choose cpu or paper" ;;
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

# A recipe of ../multi30k, with its data in MULTI30K: multi30k VERB …
multi30k() {
    OUT="$MULTI30K" SIZE="$TRANSFORMER_SIZE" MAX_EPOCH="$MAX_EPOCH" SOURCE="$SOURCE" TARGET="$TARGET" SEED="$SEED" \
        bash "$EXAMPLES/recipe.sh" "$1" multi30k "${@:2}"
}

# The data of ../multi30k, unless they are there. Takes what is taken there: DATA, MERGES, STANZA_TAGGER, STANZA_PARSER.
prepare() {
    if [[ -s "$DATA_BIN/syntax-$SOURCE-$TARGET.json" ]]; then
        echo "= $DATA_BIN is there" >&2
    else
        multi30k prepare
    fi
}

train() {
    local system="${1:-}"
    check_system "$system"
    there "$DATA_BIN" "run bash examples/recipe.sh prepare sdatt, or set MULTI30K"
    local files=(--save-dir "$OUT/checkpoints/$system-$SEED" --log-file "$OUT/$system-$SEED.log")
    run mkdir -p "$OUT"
    if [[ "$system" == *transformer ]]; then
        # a system of ../multi30k, which is trained as it is there, but for the number of epochs
        multi30k train "$system" "${files[@]}" "${@:2}"
    else
        recurrent_options
        run fairseq-train "$DATA_BIN" --user-dir "$USER_DIR" --arch "$system" "${RECURRENT[@]}" "${DEVICE[@]}" \
            --source-lang "$SOURCE" --target-lang "$TARGET" --max-epoch "$MAX_EPOCH" --seed "$SEED" --num-workers 0 \
            --log-format simple --log-interval 100 --no-epoch-checkpoints "${files[@]}" "${@:2}"
    fi
}

evaluate() {
    check_system "${1:-}"
    multi30k_evaluate "$MULTI30K/text" "$1" "${2:-test}" --max-tokens 4096
}

# BLEU beside the baseline, significance, and BLEU by source length with a picture, of all systems that have been
# evaluated: compare [SPLIT] [options of fairseq-syntax compare].  Recurrent systems against global_att and, as in the
# paper, against chen17 and global_plus_chen17; Transformers against transformer
compare() {
    subset="${1:-test}" options=("${@:2}") compared=""
    check_split "$subset"
    compare_kind recurrent "${PAPER_SYSTEMS[@]}"
    compare_kind transformers "${TRANSFORMERS[@]}"
    [[ -n "$compared" ]] || exit 1
}

# compare_kind NAME BASELINE SYSTEM …
compare_kind() {
    local system systems=() names=() baselines=(--baseline "$2")
    for system in "${@:2}"; do
        [[ -n "$DRY_RUN" || -s "$OUT/$system-$SEED.$subset.generated" ]] || continue
        systems+=(--system "$system" "$OUT/$system-$SEED.$subset.generated")
        names+=("$system")
        [[ "$system" != *chen17 ]] || baselines+=(--baseline "$system")
    done
    if [[ "${names[0]:-}" != "$2" || ${#names[@]} -lt 2 ]]; then
        echo "recipe.sh compare sdatt: $1, $subset: evaluate $2 and another system first (in $OUT: ${names[*]:-none})" >&2
        return
    fi
    compared+=" $1"
    run_to "$OUT/$1-$SEED.$subset.txt" fairseq-syntax compare "${systems[@]}" "${baselines[@]}" \
        --reference "$MULTI30K/text/$subset.$TARGET" --source "$MULTI30K/text/$subset.$SOURCE" \
        --draw "$OUT/$1-$SEED.$subset.svg" --sign-test --overwrite "${options[@]}"
    [[ -n "$DRY_RUN" ]] || { echo "== $1, $subset" && cat "$OUT/$1-$SEED.$subset.txt" && echo; }
}
