#!/usr/bin/env bash
# An experiment on several machines that share its folder, as a Slurm array. Every task takes one run after the other that
# no other task has; the last one to end writes the report. Submit it again to resume what was stopped.
#   sbatch --array=0-3 --cpus-per-task=2 experiment.sh FOLDER [options of fairseq-syntax experiment]
set -euo pipefail
[[ -n "${1:-}" ]] || {
    echo "experiment.sh: give the folder of an experiment, which fairseq-syntax experiment has begun" >&2
    exit 2
}
exec fairseq-syntax experiment "$@" --jobs "${SLURM_CPUS_PER_TASK:-1}"
