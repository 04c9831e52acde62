"""Measure how IN, LN, BN and SN scale filters, against Remark 1 of the paper; draw its figure.

python -m studies.geometry --out docs/geometry
"""

import argparse
from dataclasses import asdict
from pathlib import Path

import torch

from sn_openmmlab.errors import exit_with_sentence
from studies.experiments.geometry import measure_assumptions, measure_gammas, measure_lengths
from studies.presentation.geometry import all_tables, draw_geometry
from studies.presentation.machine import describe
from studies.presentation.output import make_folder, write_data

SHARES = [k / 8 for k in range(9)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument(
        '--out', type=Path, required=True, help='the folder of the records, tables and the figure'
    )
    args = parser.parse_args()
    make_folder(args.out)
    torch.manual_seed(0)
    parts = {
        'lengths': measure_lengths(SHARES),
        'gammas': measure_gammas(),
        'assumptions': measure_assumptions(),
    }
    content = {name: [asdict(row) for row in rows] for name, rows in parts.items()}
    write_data({'machine': describe(torch.device('cpu')), **content}, args.out / 'measured.json')
    page = all_tables(**parts)
    (args.out / 'tables.md').write_text(page + '\n')
    draw_geometry(parts['lengths'], parts['gammas'], args.out / 'filters.png')
    print(page)


if __name__ == '__main__':
    exit_with_sentence(main)
