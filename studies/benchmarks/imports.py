"""The CPU seconds of processes that import the package, and of those that import what it needs."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

# What is imported, by the name of its row; the first process is one without mmengine.
CASES = {
    'torch, in a process without mmengine': "import sys; sys.modules['mmengine'] = None; ",
    'mmengine.runner and mmengine.optim': 'import mmengine.runner, mmengine.optim; ',
}
WITH = {'alone': 'import torch', 'with sn_openmmlab': 'import torch, sn_openmmlab'}


def time_imports(rounds: int, env: Mapping[str, str]) -> dict[str, dict[str, list[float]]]:
    """Return the seconds of each process, by its row and what it imports; they take turns.

    Args:
        rounds: the number of processes of each kind.
        env: the variables of the processes.

    Raises:
        RuntimeError: a process failed.
    """
    seconds = {case: {name: [] for name in WITH} for case in CASES}
    for _ in range(rounds):
        for case, before in CASES.items():
            for name, code in WITH.items():
                command = [sys.executable, '-W', 'ignore', '-c', before + code]
                seconds[case][name].append(_cpu_seconds(command, env))
    return seconds


def _cpu_seconds(command: Sequence[str], env: Mapping[str, str]) -> float:
    quiet = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}
    with subprocess.Popen(command, env=env, **quiet) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f'a process that imports the package failed: {command}')
    return usage.ru_utime + usage.ru_stime
