"""Train variants of SN on this CPU: groups of ratios, an LSTM, video; write records and figures.

python -m studies.variants --out docs/variants
"""

import argparse
from pathlib import Path

import torch

from sn_openmmlab.errors import exit_with_sentence
from studies.experiments.records import read_records, write_records
from studies.experiments.variants import PARTS, all_tables, draw_figures
from studies.presentation.machine import describe
from studies.presentation.output import make_folder


def main() -> None:
    """Train the chosen parts, then write tables and figures of all parts."""
    args = _read_arguments()
    make_folder(args.out)
    machine = describe(torch.device('cpu'))
    for part in args.parts:
        records = []
        for seed in range(args.seeds):
            for record in PARTS[part](seed):
                print(part, record.variant, seed, record.metrics, flush=True)
                records.append(record)
        write_records(records, machine, args.out / f'{part}.json')
    parts = {part: read_records(args.out / f'{part}.json')[0] for part in PARTS}
    (args.out / 'tables.md').write_text(all_tables(parts, machine) + '\n')
    draw_figures(parts, args.out)


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument(
        '--out', type=Path, required=True, help='the folder of the records, tables and figures'
    )
    parser.add_argument(
        '--parts',
        nargs='*',
        choices=PARTS,
        default=list(PARTS),
        help='what to train anew; the records of the others have to be there (all)',
    )
    parser.add_argument('--seeds', type=int, default=3, help='trainings of each kind (%(default)s)')
    return parser.parse_args()


if __name__ == '__main__':
    exit_with_sentence(main)
