"""Time a training step of Faster R-CNN R-50-FPN with SN, GN and BN in the same places.

python -m studies.benchmark_step --out docs/speed
"""

from pathlib import Path

import torch

from sn_openmmlab.errors import exit_with_sentence
from sn_openmmlab.runs.config import read_config
from studies.benchmarks.command_line import read_arguments
from studies.benchmarks.steps import norm_share, training_steps
from studies.benchmarks.timing import time_in_turns
from studies.presentation.benchmark_tables import step_table
from studies.presentation.machine import describe
from studies.presentation.output import write_data

ROOT = Path(__file__).resolve().parents[1]
CONFIG = 'configs/detection/faster_rcnn/faster-rcnn_r50_fpn_sn-all_1x_coco.py'
ROUNDS = 7
SIZE = (256, 384)


def main() -> None:
    args = read_arguments(__doc__, 'step.json')
    device = torch.device('cpu')
    steps = training_steps(read_config(ROOT / CONFIG), SIZE, device)
    data = {
        'machine': describe(device),
        'config': CONFIG,
        'images': 2,
        'size': SIZE,
        'rounds': ROUNDS,
        'milliseconds': time_in_turns(steps, ROUNDS, device, calls=1),
        'norm_share': {name: norm_share(step) for name, step in steps.items()},
    }
    write_data(data, args.out / 'step.json')
    print(step_table(data))


if __name__ == '__main__':
    exit_with_sentence(main)
