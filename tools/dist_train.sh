#!/usr/bin/env bash
# Train on several GPUs of this machine, or of several machines, each of which runs this script.
#
#   tools/dist_train.sh CONFIG GPUS [options of tools/train.py]
#
# _dist_run.sh says what GPUS are, and what is taken from the environment.
set -euo pipefail

if [ $# -lt 2 ]; then
    echo "usage: $0 CONFIG GPUS [options of tools/train.py]" >&2
    exit 2
fi
exec "$(dirname "${BASH_SOURCE[0]}")/_dist_run.sh" "$2" train.py "$1" "${@:3}"
