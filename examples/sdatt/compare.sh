#!/usr/bin/env bash
# BLEU beside the baseline, significance, and BLEU by source length with a picture, of all systems that have been
# evaluated: bash examples/sdatt/compare.sh [test|test1|valid] [options of fairseq-syntax-compare]
#   recurrent systems against global_att and, as in the paper, against chen17 and global_plus_chen17; Transformers against
#   transformer
source "$(dirname "$0")/settings.sh"
subset="${1:-test}"
options=("${@:2}")
compared=""
compare() { # name of the comparison, baseline, system …
    local system outputs=() names=() against=()
    for system in "${@:2}"; do
        [[ -n "$DRY_RUN" || -s "$OUT/$system-$SEED.$subset.generated" ]] || continue
        outputs+=("$OUT/$system-$SEED.$subset.generated")
        names+=("$system")
        [[ "$system" != *chen17 ]] || against+=(--against "$system")
    done
    if [[ "${names[0]:-}" != "$2" || ${#names[@]} -lt 2 ]]; then
        echo "compare.sh: $1, $subset: evaluate $2 and another system first (in $OUT: ${names[*]:-none})" >&2
        return
    fi
    compared+=" $1"
    run_to "$OUT/$1-$SEED.$subset.txt" fairseq-syntax-compare "${outputs[@]}" --names "${names[@]}" \
        --reference "$MULTI30K/text/$subset.$TARGET" --source "$MULTI30K/text/$subset.$SOURCE" \
        --plot "$OUT/$1-$SEED.$subset.svg" --overwrite "${against[@]}" "${options[@]}"
    [[ -n "$DRY_RUN" ]] || { echo "== $1, $subset" && cat "$OUT/$1-$SEED.$subset.txt" && echo; }
}
compare recurrent "${PAPER_SYSTEMS[@]}"
compare transformers "${TRANSFORMERS[@]}"
[[ -n "$compared" ]] || exit 1
