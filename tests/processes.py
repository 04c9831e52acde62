"""Run scripts as separate processes, in new interpreters or forked from one that is warm."""

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypedDict

import torch

LIMIT = 900
PYTHON = (sys.executable, '-X', 'faulthandler', '-W', 'ignore')
# CUDA does not survive a fork, nor do system libraries of macOS.
CAN_FORK = sys.platform == 'linux' and not torch.cuda.is_available()


class Job(TypedDict):
    """The arguments of ``python``, its folder, environment, output files and limit in seconds."""

    args: list[str]
    cwd: str
    env: dict[str, str]
    stdout: str
    stderr: str
    limit: int


class WarmProcess:
    """A process that has imported the toolboxes and forks itself for each script.

    The first script starts it.
    """

    def __init__(self, env: dict[str, str]) -> None:
        self.env = env
        self.process = None

    def run(self, jobs: Sequence[Job]) -> list[int]:
        """Run the jobs at the same time and return their exit codes."""
        if self.process is None:
            self.process = subprocess.Popen(
                [*PYTHON, Path(__file__).with_name('warm_process.py')],
                env=self.env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        print(json.dumps(jobs), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        """End the process, if it was started."""
        if self.process is not None:
            self.process.communicate()


def run_anew(jobs: Sequence[Job]) -> list[int]:
    """Run the jobs at the same time in new interpreters and return their exit codes."""
    with ExitStack() as stack:
        processes = []
        for job in jobs:
            process = subprocess.Popen(
                [*PYTHON, *job['args']],
                cwd=job['cwd'],
                env=job['env'],
                stdin=subprocess.DEVNULL,
                stdout=stack.enter_context(open(job['stdout'], 'w')),
                stderr=stack.enter_context(open(job['stderr'], 'w')),
            )
            stack.callback(process.kill)
            processes.append(process)
        return [process.wait(job['limit']) for process, job in zip(processes, jobs, strict=True)]
