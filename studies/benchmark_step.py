"""Time a training step of Faster R-CNN R-50-FPN with SN against GN and BN in the same places.

python -m studies.benchmark_step --out docs/speed
"""

import argparse
import json
from pathlib import Path

import torch

from sn_openmmlab.errors import exit_with_sentence
from sn_openmmlab.runs.config import read_config
from studies.benchmarks.steps import training_steps
from studies.benchmarks.tables import step_table
from studies.benchmarks.timing import time_in_turns
from studies.presentation.machine import describe

CONFIG = 'configs/detection/faster_rcnn/faster-rcnn_r50_fpn_sn-all_1x_coco.py'
ROUNDS = 3
SIZE = (256, 384)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--out', type=Path, required=True, help='the folder of step.json')
    parser.add_argument('--threads', type=int, default=2, help='threads of the CPU')
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    device = torch.device('cpu')
    steps = training_steps(read_config(CONFIG), SIZE, device)
    data = {
        'machine': describe(device),
        'config': CONFIG,
        'images': 2,
        'size': SIZE,
        'rounds': ROUNDS,
        'milliseconds': time_in_turns(steps, ROUNDS, device),
    }
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / 'step.json').write_text(json.dumps(data, indent=1) + '\n')
    print(step_table(data))


if __name__ == '__main__':
    exit_with_sentence(main)
