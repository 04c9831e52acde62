"""Time a training step with and without NonFiniteGuardHook.

python -m studies.benchmark_guard --out docs/speed --threads 1
"""

import os
from pathlib import Path

import torch

from sn_openmmlab.errors import exit_with_sentence
from sn_openmmlab.runs.config import read_config
from studies.benchmarks.command_line import read_arguments
from studies.benchmarks.guard import BASELINE, guarded_steps
from studies.benchmarks.sparse import measure
from studies.presentation.benchmark_tables import guard_table
from studies.presentation.machine import describe
from studies.presentation.output import write_data

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = {
    'detector': 'configs/demo/faster-rcnn_r18_fpn_sn-all_digits.py',
    'classifier': 'configs/demo/resnet18_sn_digits.py',
}
SIDE = 224
ROUNDS = 15


def main() -> None:
    args = read_arguments(__doc__, 'guard.json')
    busy = os.getloadavg()[0]
    models = {
        name: measure(guarded_steps(read_config(ROOT / file), SIDE), ROUNDS, BASELINE)
        for name, file in CONFIGS.items()
    }
    data = {
        'machine': describe(torch.device('cpu')),
        'load_before': busy,
        'load_after': os.getloadavg()[0],
        'configs': CONFIGS,
        'images': 2,
        'side': SIDE,
        'rounds': ROUNDS,
        'models': models,
    }
    write_data(data, args.out / 'guard.json')
    print(guard_table(data))


if __name__ == '__main__':
    exit_with_sentence(main)
