#!/usr/bin/env bash
# Train in several processes: the GPUs of one machine or of several, or CPU processes. See README.md beside this file.
#   GPUS_PER_NODE=4 bash launch.sh DATA --user-dir fairseq_syntax --arch pascal_transformer …
#   NNODES=2 NODE_RANK=0 MASTER_ADDR=first-machine GPUS_PER_NODE=4 bash launch.sh DATA …   (NODE_RANK=1 on the second)
#   CPU_PROCESSES=2 bash launch.sh DATA …
# DRY_RUN=1 prints the command instead of running it.
set -euo pipefail

die() {
    echo "launch.sh: $*" >&2
    exit 2
}

if [[ "${1:-}" == --as-worker ]]; then # started by torchrun, once for each process
    shift
    backend=(--device-id "$LOCAL_RANK" --distributed-backend nccl)
    # fairseq's default wrapper fails without a GPU
    [[ -n "${CPU_PROCESSES:-}" ]] && backend=(--cpu --distributed-backend gloo --ddp-backend legacy_ddp)
    # all of it explicitly: what fairseq guesses from the environment, it guesses wrong (see README.md)
    exec fairseq-train "$@" --distributed-world-size "$WORLD_SIZE" --distributed-rank "$RANK" \
        --distributed-init-method env:// --distributed-no-spawn "${backend[@]}"
fi

: "${NNODES:=1}" "${DRY_RUN:=}"
[[ $# -gt 0 ]] || die "give the arguments of fairseq-train; how many processes is set by GPUS_PER_NODE or CPU_PROCESSES"
[[ -z "${RANK:-}${LOCAL_RANK:-}${TORCHELASTIC_RUN_ID:-}" ]] ||
    die "RANK or LOCAL_RANK is set: this looks like torchrun; start launch.sh itself, once on each machine"
[[ -z "${GPUS_PER_NODE:-}" || -z "${CPU_PROCESSES:-}" ]] || die "give GPUS_PER_NODE or CPU_PROCESSES, not both"
for argument in "$@"; do
    case "$argument" in
    --distributed-* | --device-id | --device-id=* | --local_rank | --local_rank=*)
        die "$argument: launch.sh sets it; leave it out" ;;
    --ddp-backend | --ddp-backend=* | --cpu)
        [[ -z "${CPU_PROCESSES:-}" ]] || die "$argument: launch.sh sets it for CPU_PROCESSES; leave it out"
        [[ "$argument" != --cpu ]] || die "--cpu: give CPU_PROCESSES=N instead of GPUS_PER_NODE" ;;
    esac
done

if [[ -n "${CPU_PROCESSES:-}" ]]; then
    processes="$CPU_PROCESSES"
    export CPU_PROCESSES OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
elif [[ -n "${GPUS_PER_NODE:-}" && -n "$DRY_RUN" ]]; then
    processes="$GPUS_PER_NODE"
else
    present="$(python -c 'import torch; print(torch.cuda.device_count())')"
    processes="${GPUS_PER_NODE:-$present}"
    [[ "$present" -gt 0 ]] || die "no GPU found; for CPU processes give CPU_PROCESSES=N"
    [[ ! "$processes" =~ ^[0-9]+$ || "$processes" -le "$present" ]] ||
        die "GPUS_PER_NODE=$processes, but this machine has $present"
fi
[[ "$processes" =~ ^[1-9][0-9]*$ ]] || die "GPUS_PER_NODE or CPU_PROCESSES is '$processes'; give a number, 1 or more"
[[ "$NNODES" =~ ^[1-9][0-9]*$ ]] || die "NNODES is '$NNODES'; give a number, 1 or more"

if [[ "$NNODES" -gt 1 ]]; then
    [[ -n "${MASTER_ADDR:-}" ]] || die "NNODES=$NNODES: give MASTER_ADDR, the name of the machine with NODE_RANK=0"
    [[ "${NODE_RANK:-}" =~ ^[0-9]+$ && "$NODE_RANK" -lt "$NNODES" ]] ||
        die "NNODES=$NNODES: give NODE_RANK, 0 to $((NNODES - 1)), another on each machine"
    where=(--nnodes "$NNODES" --node_rank "$NODE_RANK" --master_addr "$MASTER_ADDR"
        --master_port "${MASTER_PORT:-29500}")
elif [[ -n "${MASTER_PORT:-}" ]]; then
    where=(--nnodes 1 --node_rank 0 --master_addr "${MASTER_ADDR:-127.0.0.1}" --master_port "$MASTER_PORT")
else
    where=(--standalone) # finds a free port
fi
[[ $((NNODES * processes)) -gt 1 ]] || echo "launch.sh: one process only; plain fairseq-train does the same" >&2

torchrun="$(dirname "${BASH_SOURCE[0]}")/torchrun.py"
command=(python "$torchrun" "${where[@]}" --nproc_per_node "$processes"
    --no-python bash "${BASH_SOURCE[0]}" --as-worker "$@")
if [[ -n "$DRY_RUN" ]]; then
    printf '%q ' ${CPU_PROCESSES:+env "CPU_PROCESSES=$CPU_PROCESSES"} "${command[@]}"
    echo
    exit
fi
exec "${command[@]}"
