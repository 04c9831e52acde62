#!/usr/bin/env bash
# Test a checkpoint on several GPUs of this machine, or of several machines, each of which runs this
# script.
#
#   tools/dist_test.sh CONFIG CHECKPOINT GPUS [options of tools/test.py]
#
# _dist_run.sh says what GPUS are, and what is taken from the environment.
set -euo pipefail

if [ $# -lt 3 ]; then
    echo "usage: $0 CONFIG CHECKPOINT GPUS [options of tools/test.py]" >&2
    exit 2
fi
exec "$(dirname "${BASH_SOURCE[0]}")/_dist_run.sh" "$3" test.py "$1" "$2" "${@:4}"
