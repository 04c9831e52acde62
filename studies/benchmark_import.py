"""Time how long importing the package takes, beside importing what it needs.

python -m studies.benchmark_import --out docs/speed
"""

import os
from pathlib import Path

import torch

from sn_openmmlab.errors import exit_with_sentence
from studies.benchmarks.command_line import read_arguments
from studies.benchmarks.imports import time_imports
from studies.presentation.benchmark_tables import import_table
from studies.presentation.machine import describe
from studies.presentation.output import write_data

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 9


def main() -> None:
    args = read_arguments(__doc__, 'import.json')
    env = {**os.environ, 'PYTHONPATH': str(ROOT), 'OMP_NUM_THREADS': str(args.threads)}
    data = {'machine': describe(torch.device('cpu')), 'cpu_seconds': time_imports(ROUNDS, env)}
    write_data(data, args.out / 'import.json')
    print(import_table(data))


if __name__ == '__main__':
    exit_with_sentence(main)
