"""Time inference with BN, SN, sparse SN and exported sparse SN in the same places.

python -m studies.benchmark_sparse --out docs/speed --threads 1
"""

import os
from pathlib import Path

import torch

from sn_openmmlab.errors import exit_with_sentence
from sn_openmmlab.runs.config import read_config
from studies.benchmarks.command_line import read_arguments
from studies.benchmarks.sparse import inferences, measure
from studies.presentation.benchmark_tables import sparse_table
from studies.presentation.machine import describe
from studies.presentation.output import write_data

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = {
    'detector': 'configs/demo/faster-rcnn_r18_fpn_sn-all_digits.py',
    'classifier': 'configs/demo/resnet18_sn_digits.py',
}
ROUNDS = 15


def main() -> None:
    args = read_arguments(__doc__, 'sparse.json')
    busy = os.getloadavg()[0]
    models = {
        name: measure(inferences(read_config(ROOT / file)), ROUNDS)
        for name, file in CONFIGS.items()
    }
    data = {
        'machine': describe(torch.device('cpu')),
        'load_before': busy,
        'load_after': os.getloadavg()[0],
        'configs': CONFIGS,
        'side': 224,
        'rounds': ROUNDS,
        'models': models,
    }
    write_data(data, args.out / 'sparse.json')
    print(sparse_table(data))


if __name__ == '__main__':
    exit_with_sentence(main)
