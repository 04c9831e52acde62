"""Train the quickstart's detector for hours; record what its process uses, seen from outside.

python -m studies.soak --out docs/soak --work-dir work_dirs/soak
"""

import argparse
import signal
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch

from sn_openmmlab.errors import UsageError, exit_with_sentence
from studies.experiments.command_line import ROOT, TRAIN
from studies.experiments.soak import soak
from studies.presentation.machine import describe
from studies.presentation.output import make_folder, write_rows
from studies.presentation.soak import FEWEST, draw_soak, soak_page


def main() -> None:
    """Train and record; also what there is when it is stopped."""
    args = _read_arguments()
    # The configs and the data are named from there.
    if Path.cwd() != ROOT:
        raise UsageError(f'run this in the root of the repository: cd {ROOT}.')
    make_folder(args.out)
    soak(TRAIN, args.work_dir, args.hours, partial(_save, args.out, describe(torch.device('cpu'))))
    print((args.out / 'tables.md').read_text())


def _save(folder: Path, machine: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    write_rows({'machine': machine, **data}, 'samples', folder / 'samples.json')
    if len(data['samples']) < FEWEST:
        return
    (folder / 'tables.md').write_text(soak_page(data, machine) + '\n')
    draw_soak(data, folder / 'usage.png')


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument(
        '--out', type=Path, required=True, help='the folder of the record, tables and figure'
    )
    parser.add_argument(
        '--work-dir', type=Path, required=True, help='the folder of the training, made anew'
    )
    parser.add_argument('--hours', type=float, default=2, help='how long (%(default)s)')
    args = parser.parse_args()
    if args.hours <= 0:
        raise UsageError(f'--hours has to be above 0, not {args.hours}.')
    return args


if __name__ == '__main__':
    # So that a terminated command ends its training too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    exit_with_sentence(main)
