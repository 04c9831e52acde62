"""Time training steps with spinning and with sleeping OpenMP threads, alone and on busy cores.

python -m studies.benchmark_busy --out docs/speed
"""

import os
import sys
from pathlib import Path

import torch

from sn_openmmlab.errors import exit_with_sentence
from studies.benchmarks.busy import time_steps
from studies.benchmarks.command_line import read_arguments
from studies.presentation.benchmark_tables import busy_table
from studies.presentation.machine import describe
from studies.presentation.output import write_data
from tools import _sleeping_threads

ROOT = Path(__file__).resolve().parents[1]
CONFIG = 'configs/_base_/faster-rcnn_r18_fpn_sn-all_scratch.py'
SIZE = (192, 256)
ROUNDS = 8
SECONDS = 75
BESIDE = 4


def main() -> None:
    args = read_arguments(__doc__, 'busy.json')
    # As a file: with -m, studies would set how threads wait before torch is loaded.
    stepper = [sys.executable, ROOT / 'studies/benchmarks/stepper.py', ROOT / CONFIG]
    # Without this process's own settings, which may be either.
    settings = _sleeping_threads.SETTINGS
    spinning = {name: value for name, value in os.environ.items() if name not in settings}
    spinning['PYTHONPATH'] = str(ROOT)
    data = {
        'machine': describe(torch.device('cpu')),
        'config': CONFIG,
        'images': 2,
        'size': SIZE,
        'beside': BESIDE,
        'milliseconds': time_steps(
            [*map(str, (*stepper, *SIZE, args.threads))],
            {'spin': spinning, 'sleep': {**spinning, **_sleeping_threads.OURS}},
            rounds=ROUNDS,
            seconds=SECONDS,
            beside=BESIDE,
        ),
    }
    write_data(data, args.out / 'busy.json')
    print(busy_table(data))


if __name__ == '__main__':
    exit_with_sentence(main)
