#!/usr/bin/env bash
# Train on a cluster with Slurm, one process per GPU.
#
#   tools/slurm_train.sh PARTITION JOB_NAME CONFIG WORK_DIR [options of tools/train.py]
#
# From the environment: GPUS, the number of them in all (8); GPUS_PER_NODE (8); CPUS_PER_TASK, the
# cores of each process (5); SRUN_ARGS, further arguments of srun, separated by spaces; MASTER_PORT,
# a free port of the first machine (29500).
set -euo pipefail

if [ $# -lt 4 ]; then
    echo "usage: $0 PARTITION JOB_NAME CONFIG WORK_DIR [options of tools/train.py]" >&2
    exit 2
fi
partition=$1
job_name=$2
config=$3
work_dir=$4
shift 4
gpus_per_node=${GPUS_PER_NODE:-8}
read -r -a srun_args <<<"${SRUN_ARGS:-}"
tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PYTHONPATH="$tools/..${PYTHONPATH:+:$PYTHONPATH}"

exec srun -p "$partition" \
    --job-name="$job_name" \
    --gres="gpu:$gpus_per_node" \
    --ntasks="${GPUS:-8}" \
    --ntasks-per-node="$gpus_per_node" \
    --cpus-per-task="${CPUS_PER_TASK:-5}" \
    --kill-on-bad-exit=1 \
    ${srun_args[@]+"${srun_args[@]}"} \
    python -u "$tools/train.py" "$config" --work-dir="$work_dir" --launcher=slurm "$@"
