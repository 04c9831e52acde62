#!/usr/bin/env bash
# Start a tool of this folder once per GPU: _dist_run.sh GPUS TOOL [arguments of the tool].
#
# GPUS are those of one machine. From the environment: NNODES, the number of machines (1);
# NODE_RANK, the number of this one from 0 (0); MASTER_ADDR, the address of machine 0 (127.0.0.1);
# PORT, a free port of it (29500).
set -euo pipefail

gpus=$1
tool=$2
shift 2
tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PYTHONPATH="$tools/..${PYTHONPATH:+:$PYTHONPATH}"

exec python -m torch.distributed.run \
    --nnodes "${NNODES:-1}" \
    --node-rank "${NODE_RANK:-0}" \
    --nproc-per-node "$gpus" \
    --master-addr "${MASTER_ADDR:-127.0.0.1}" \
    --master-port "${PORT:-29500}" \
    "$tools/$tool" "$@" --launcher pytorch
