#!/usr/bin/env bash
# Parse a text in shards on several machines that share its folder, by ssh or as a Slurm array, then merge them.
#   HOSTS="node1 node2" bash parse.sh TEXT OUTPUT.conllu.gz [options of fairseq-syntax parse]   a shard per host, and merges
#   sbatch --array=0-15 parse.sh TEXT OUTPUT.conllu.gz [options]                                a shard per task
#   SHARDS=16 sbatch --array=3 parse.sh TEXT OUTPUT.conllu.gz [options]                         one of them again
#   SHARDS=16 bash parse.sh --merge TEXT OUTPUT.conllu.gz                                       when all tasks have ended
# DRY_RUN=1 prints the commands instead of running them. Repeated after a failure, it parses only what is missing.
set -euo pipefail

die() {
    echo "parse.sh: $*" >&2
    exit 2
}

merge=
[[ "${1:-}" != --merge ]] || { merge=1 && shift; }
[[ $# -ge 2 && "$1" != -* && "$2" == *.conllu.gz ]] || die "give TEXT and OUTPUT.conllu.gz, then options of fairseq-syntax parse"
text="$1" output="$2"
shift 2
read -ra hosts <<< "${HOSTS:-}"
[[ -z "${HOSTS:-}" || -z "${SLURM_ARRAY_TASK_ID:-}" ]] || die "HOSTS is set inside a Slurm array; unset it"
shards="${SHARDS:-${SLURM_ARRAY_TASK_COUNT:-${#hosts[@]}}}"
((shards > 0)) || die "give HOSTS, or SHARDS with --merge, or start it with sbatch --array=0-N"
[[ -f "$text" ]] || die "$text: no such file"

# parts of another text, or of other shards, have other names
made_of="$(sha256sum < "$text" | head -c 8)-$shards"

part() { # number
    echo "${output%.conllu.gz}.$made_of.$1.conllu.gz"
}

run() {
    if [[ -n "${DRY_RUN:-}" ]]; then
        printf '%q ' "$@" && echo
    else
        "$@"
    fi
}

# One file of all parts, or an error
merge_parts() {
    local parts=() i
    for ((i = 0; i < shards; i++)); do
        parts+=("$(part "$i")")
        [[ -n "${DRY_RUN:-}" || -s "$(part "$i")" ]] || die "$(part "$i"): missing; parse shard $i again"
    done
    if [[ -n "${DRY_RUN:-}" ]]; then
        echo "cat ${parts[*]} > $output"
        return
    fi
    trap 'rm -f "$output.partial"' EXIT
    cat "${parts[@]}" > "$output.partial"
    local trees lines
    trees=$(gzip -dc "$output.partial" | grep -c '^$' || true)
    lines=$(gzip -dcf "$text" | grep -c '' || true)
    if ((trees != lines)); then
        die "$output: the parts have $trees trees, $text has $lines lines; remove the parts, and parse again"
    fi
    mv "$output.partial" "$output"
    rm "${parts[@]}"
}

parse_shard() { # number, then what runs it: nothing, or ssh HOST
    local number="$1" command
    shift
    [[ ! -s "$(part "$number")" ]] || return 0
    command=(fairseq-syntax parse --input "$text" --output "$(part "$number")" --shard "$number/$shards" "${options[@]}")
    if [[ $# -gt 0 ]]; then
        run "$@" "cd $(printf '%q' "$PWD") && PATH=$(printf '%q' "$PATH") $(printf '%q ' "${command[@]}")"
    else
        run "${command[@]}"
    fi
}

options=("$@")
if [[ -n "$merge" ]]; then
    merge_parts
elif [[ -n "${SLURM_ARRAY_TASK_ID:-}" ]]; then
    parse_shard "$SLURM_ARRAY_TASK_ID"
else
    ((${#hosts[@]})) || die "give HOSTS=\"node1 node2\", or start it with sbatch --array=0-N"
    ((shards == ${#hosts[@]})) || die "SHARDS=$shards, but HOSTS names ${#hosts[@]}; leave SHARDS out"
    jobs=()
    for ((i = 0; i < shards; i++)); do
        parse_shard "$i" ssh "${hosts[$i]}" &
        jobs+=($!)
    done
    failed=()
    for ((i = 0; i < shards; i++)); do
        wait "${jobs[$i]}" || failed+=("${hosts[$i]}")
    done
    ((${#failed[@]} == 0)) || die "failed on ${failed[*]}; the same command parses what is missing, then merges"
    merge_parts
fi
