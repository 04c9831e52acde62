"""Count the authors' detections that are found again with MMDetection's parts, one by one.

python -m studies.released_detectors --out docs/released_detectors
"""

import argparse
from dataclasses import asdict
from pathlib import Path

import torch

from sn_openmmlab.errors import exit_with_sentence
from studies.experiments.released_detectors import measure, worth_table
from studies.presentation.machine import describe
from studies.presentation.output import make_folder, write_data
from tests import recorded_detectors, released_weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument(
        '--out', type=Path, required=True, help='the folder of found.json and tables.md'
    )
    args = parser.parse_args()
    make_folder(args.out)
    found = measure(
        lambda case: recorded_detectors.read(case, part=True),
        lambda case: released_weights.build(case)['model'],
    )
    machine = describe(torch.device('cpu'))
    content = {'machine': machine, 'found': [asdict(row) for row in found]}
    write_data(content, args.out / 'found.json')
    (args.out / 'tables.md').write_text(worth_table(found) + '\n')
    print(worth_table(found))


if __name__ == '__main__':
    exit_with_sentence(main)
