# Every setting can be overridden from the environment.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
: "${OUT:=outputs/latent_tree}"     # everything is written below
: "${SOURCE:=de}" "${TARGET:=en}"
: "${SIZE:=cpu}"                    # cpu: fits two cores; paper: the paper's size and batch
: "${WORKERS:=2}"
: "${DATA:=}"                       # folder of a local copy, instead of downloading it
: "${LR:=1e-3}"
: "${TOKENIZE:=13a}"                # of sacreBLEU; none for text that is in tokens already
DATA_BIN="$OUT/data-bin"
URL=https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw
SYSTEMS=(latent shallow paper literal words no_reward no_coverage head char_lstm lstm)
SPLITS=(valid test test1)

case "$SIZE" in
cpu)
    : "${MAX_EPOCH:=6}" "${BATCH_SIZE:=32}" "${HIDDEN:=128}"
    DEVICE=(--cpu)
    ;;
paper)
    : "${MAX_EPOCH:=12}" "${BATCH_SIZE:=10}" "${HIDDEN:=384}"
    DEVICE=()
    ;;
*) stop "SIZE=$SIZE: choose cpu or paper" ;;
esac

# System -> options of fairseq-train that make it: system_options SYSTEM
#   SYSTEM_OPTIONS: those;  TASK: options of the task, also for fairseq-generate
system_options() {
    check_system "${1:-}"
    local trees=(--arch latent_tree_rnng --rnng-size "$HIDDEN" --criterion reinforce_tree)
    local lstm=(--encoder-layers 2 --decoder-layers 2 --encoder-embed-dim "$HIDDEN" --decoder-embed-dim "$HIDDEN"
        --decoder-hidden-size "$HIDDEN" --dropout 0.1 --criterion cross_entropy --eval-bleu-detok syntax_char)
    TASK=(--task tree_translation)
    case "$1" in
    latent) SYSTEM_OPTIONS=("${trees[@]}") ;;
    shallow | paper | literal) SYSTEM_OPTIONS=("${trees[@]}" --rnng-preset "$1") ;;
    # the policy must learn the trees that are given: it builds them alone when it translates
    words) SYSTEM_OPTIONS=("${trees[@]}" --rnng-forced-trees "$1" --rnng-action-xent 1) ;;
    no_reward) SYSTEM_OPTIONS=("${trees[@]}" --rnng-policy-weight 0) ;;
    no_coverage) SYSTEM_OPTIONS=("${trees[@]}" --rnng-coverage-weight 0) ;;
    head) SYSTEM_OPTIONS=("${trees[@]}" --rnng-policy-grad head) ;;
    # both directions together are of the size
    char_lstm)
        TASK=()
        SYSTEM_OPTIONS=(--arch char_lstm "${lstm[@]}" --encoder-hidden-size "$((HIDDEN / 2))")
        ;;
    lstm)
        TASK=()
        SYSTEM_OPTIONS=(--arch lstm "${lstm[@]}" --encoder-hidden-size "$HIDDEN" --decoder-out-embed-dim "$HIDDEN")
        ;;
    esac
}

# Text of a split, and its characters: get SPLIT NAME_THERE
get() {
    local language goal
    for language in "$SOURCE" "$TARGET"; do
        goal="$OUT/text/$1.$language"
        fetch "$goal.fetched" "$2.$language" "$URL/$2.$language.gz" # plain or packed
        unless_there "$goal" run_to "$goal" gzip -dcf "$goal.fetched"
        run fairseq-syntax characters --input "$goal" --output "$OUT/characters/$1.$language" --overwrite
    done
}

prepare() {
    run mkdir -p "$OUT/text" "$OUT/characters"
    get train train
    get valid val
    get test test_2016_flickr
    get test1 test_2017_flickr
    run rm -rf "$DATA_BIN"
    # no symbols that are made up: the model would save probability for them
    run fairseq-preprocess --source-lang "$SOURCE" --target-lang "$TARGET" --workers "$WORKERS" --padding-factor 1 \
        --trainpref "$OUT/characters/train" --validpref "$OUT/characters/valid" --testpref "$OUT/characters/test,$OUT/characters/test1" \
        --destdir "$DATA_BIN"
}

# After each epoch the validation set is translated; the model with the best BLEU is kept.
train() {
    system_options "$@"
    there "$DATA_BIN" "run bash examples/recipe.sh prepare latent_tree"
    run fairseq-train "$DATA_BIN" --user-dir "$USER_DIR" "${TASK[@]}" "${SYSTEM_OPTIONS[@]}" "${DEVICE[@]}" \
        --source-lang "$SOURCE" --target-lang "$TARGET" --optimizer adam --lr "$LR" --lr-scheduler fixed --clip-norm 5.0 \
        --batch-size "$BATCH_SIZE" --required-batch-size-multiple 1 --max-epoch "$MAX_EPOCH" --seed "$SEED" --num-workers 0 \
        --eval-bleu --eval-bleu-args '{"beam": 1, "max_len_a": 1.5, "max_len_b": 30}' \
        --best-checkpoint-metric bleu --maximize-best-checkpoint-metric \
        --log-format simple --log-interval 100 --no-epoch-checkpoints \
        --save-dir "$OUT/checkpoints/$1-$SEED" --log-file "$OUT/$1-$SEED.log" "${@:2}"
}

# Translated greedily. Scores are of the text as it is, and without repeated pairs of words, as in the paper; cased, and in
# lower case.
evaluate() {
    local system="${1:-}" subset="${2:-test}" rule case scores options
    system_options "$system"
    check_split "$subset"
    local checkpoint="$OUT/checkpoints/$system-$SEED/checkpoint_best.pt"
    there "$checkpoint" "train it first"
    local name="$OUT/$system-$SEED.$subset"
    local trees=()
    [[ ${#TASK[@]} -eq 0 ]] || trees=("${TASK[@]}" --rnng-tree-output)
    run_to "$name.generated" \
        fairseq-generate "$DATA_BIN" --user-dir "$USER_DIR" "${trees[@]}" "${DEVICE[@]}" \
        --source-lang "$SOURCE" --target-lang "$TARGET" --gen-subset "$subset" --path "$checkpoint" --beam 1 \
        --batch-size 32 --max-len-a 1.5 --max-len-b 30 --bpe syntax_char --scoring sacrebleu
    hypotheses "$name.generated" "$name.characters"
    for rule in none adjacent; do
        run_filter "$name.characters" "$name.$rule.text" fairseq-syntax characters --restore --dedup "$rule"
        for case in cased lowercase; do
            scores="$name.$rule.$case.scores" options=()
            [[ "$case" == cased ]] || options=(--lowercase)
            run_to "$scores" sacrebleu "$OUT/text/$subset.$TARGET" --input "$name.$rule.text" \
                --tokenize "$TOKENIZE" --metrics bleu chrf "${options[@]}" --force --format text
            [[ -n "$DRY_RUN" ]] || { echo "== $case, repeated pairs of words removed: $rule" && cat "$scores"; }
        done
    done
}

# What trees a system has built of a split that has been evaluated, as pictures: trees SYSTEM [SPLIT]
#   IDS   numbers of the sentences to draw
trees() {
    local system="${1:-}" subset="${2:-test}"
    : "${IDS:=0 1 2 3}"
    system_options "$system"
    check_split "$subset"
    [[ ${#TASK[@]} -gt 0 ]] || stop "$system builds no trees"
    local ids name="$OUT/$system-$SEED.$subset"
    there "$name.generated" "run bash examples/recipe.sh evaluate latent_tree $system $subset"
    read -ra ids <<< "$IDS"
    run fairseq-syntax look --constituents "$name.generated" --sentence "${ids[@]}" --draw "$name.trees.d" --overwrite
}
