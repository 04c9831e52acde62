"""A process that takes a training step of a detector with SN on request.

``python -m studies.benchmarks.stepper CONFIG HEIGHT WIDTH THREADS`` takes one step and
prints its milliseconds, then does the same for every line that it reads.
"""

import os
import sys
import time
from collections.abc import Sequence

import torch

from sn_openmmlab.runs.config import read_config
from studies.benchmarks.steps import training_steps


def main(arguments: Sequence[str]) -> None:
    """Run the command line on ``arguments``."""
    config, *numbers = arguments
    height, width, threads = map(int, numbers)
    # Keeps the output of the toolboxes apart from the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), 'w')
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    torch.set_num_threads(threads)
    step = training_steps(read_config(config), (height, width), torch.device('cpu'))['SN']
    while True:
        start = time.perf_counter()
        step()
        print((time.perf_counter() - start) * 1e3, file=answers, flush=True)
        if not sys.stdin.readline():
            return


if __name__ == '__main__':
    main(sys.argv[1:])
