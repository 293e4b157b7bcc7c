# Shared by the quick runs, quickstart.sh and latent_tree/quick.sh: several systems at the same time. They print little and
# keep what programs say in logs. Everything lands in $OUT.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

say() { printf '[%3ds] %s\n' "$SECONDS" "$*"; }

failed() { # command, log
    echo "failed: $1; the end of $2:" >&2
    tail -n 20 "$2" | cut -c1-300 >&2
    exit 1
}

# Print a command, run it, and have its output in a log: logged LOG COMMAND …
logged() {
    printf '+ %s\n' "$(printf '%q ' "${@:2}")" >&2
    [[ -n "$DRY_RUN" ]] || "${@:2}" >> "$1" 2>&1 || failed "$2" "$1"
}

# The same, but what it says on the standard output goes to a file of its own: logged_to LOG FILE COMMAND …
logged_to() {
    printf '+ %s> %q\n' "$(printf '%q ' "${@:3}")" "$2" >&2
    [[ -n "$DRY_RUN" ]] || "${@:3}" > "$2" 2>> "$1" || failed "$3" "$1"
}

# Do something for several systems at the same time, with their progress (in a log, every minute): at_once COMMAND SYSTEM …
#   OUT: folder of the logs of training, SYSTEM.log
at_once() {
    local command="$1" system job at updates jobs=() told=0
    shift
    set -m # each job in a process group of its own, by which it can be stopped with all that it has started
    for system in "$@"; do
        "$command" "$system" &
        jobs+=($!)
        # Ctrl-C does not reach jobs in the background; these jobs, not those that there are then
        # shellcheck disable=SC2064
        trap "kill -- ${jobs[*]/#/-} 2> /dev/null || true" EXIT
    done
    set +m
    while [[ -z "$DRY_RUN" ]] && kill -0 "${jobs[@]}" 2> /dev/null; do
        sleep 10
        for job in "${jobs[@]}"; do
            # one that has failed ends the run: nothing would come of the others
            kill -0 "$job" 2> /dev/null || wait "$job"
        done
        [[ -t 1 ]] || ((SECONDS - told >= 60)) || continue
        told=$SECONDS
        for at in "${!jobs[@]}"; do
            system="${*:at + 1:1}"
            updates="$({ grep -o 'num_updates=[0-9]*' "$OUT/$system.log" 2> /dev/null || true; } | tail -n 1 | cut -d = -f 2)"
            if [[ -e "$OUT/$system.test.generated" ]]; then updates=translating; fi
            kill -0 "${jobs[at]}" 2> /dev/null || updates="done"
            echo "$system ${updates:-0}"
        done | paste -sd ' ' | sed "s/^/        updates: /"
    done
    for job in "${jobs[@]}"; do
        wait "$job"
    done
    trap - EXIT
}

# Start in an empty folder $OUT, unless it holds what is of no earlier run: fresh_out LOG
fresh_out() {
    # checkpoints/ is of the recipes, which write below OUT, too
    if [[ -e "$OUT/checkpoints" ]] || [[ -n "$(ls -A "$OUT" 2> /dev/null)" && ! -e "$1" ]]; then
        echo "$(basename "$0"): OUT=$OUT exists and is not from an earlier run; name another folder" >&2
        exit 1
    fi
    run rm -rf "$OUT"
    run mkdir -p "$OUT"
}
