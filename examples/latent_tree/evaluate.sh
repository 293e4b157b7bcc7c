#!/usr/bin/env bash
# Translate a test set greedily and score it: bash examples/latent_tree/evaluate.sh SYSTEM [test|test1|valid]
# Scores are of the text as it is, and without repeated pairs of words, as in the paper; cased, and in lower case.
source "$(dirname "$0")/settings.sh"
system="${1:?give a system: $SYSTEMS}"
subset="${2:-test}"
system_options "$system"
check_subset "$subset"
checkpoint="$OUT/checkpoints/$system-$SEED/checkpoint_best.pt"
there "$checkpoint" "train $system first"
name="$OUT/$system-$SEED.$subset"
trees=()
[[ ${#TASK[@]} -eq 0 ]] || trees=("${TASK[@]}" --tree-output "$name.trees")
run_to "$name.generated" \
    fairseq-generate "$DATA_BIN" --user-dir "$USER_DIR" "${trees[@]}" "${DEVICE[@]}" \
    --source-lang "$SOURCE" --target-lang "$TARGET" --gen-subset "$subset" --path "$checkpoint" --beam 1 \
    --batch-size 32 --max-len-a 1.5 --max-len-b 30 --bpe syntax_char --scoring sacrebleu
hypotheses "$name.generated" "$name.characters"
for rule in none adjacent; do
    run_filter "$name.characters" "$name.$rule.text" fairseq-syntax-characters --restore --dedup "$rule"
    for case in cased lowercase; do
        scores="$name.$rule.$case.scores" options=()
        [[ "$case" == cased ]] || options=(--lowercase)
        run_to "$scores" sacrebleu "$OUT/text/$subset.$TARGET" --input "$name.$rule.text" \
            --tokenize "$TOKENIZE" --metrics bleu chrf "${options[@]}" --force --format text
        [[ -n "$DRY_RUN" ]] || { echo "== $case, repeated pairs of words removed: $rule" && cat "$scores"; }
    done
done
