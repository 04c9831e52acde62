"""What the tools of the experiments have in common."""

import argparse
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from sn_openmmlab.errors import UsageError, exit_with_sentence
from studies.experiments.folders import make_folder
from studies.experiments.plan import Run
from studies.experiments.pool import threads_each, train_missing
from studies.experiments.records import Record, read_record, write_records
from studies.presentation.machine import describe

TRAIN = Path(__file__).resolve().parents[2] / 'tools/train.py'


def run_experiment(
    description: str,
    plan: Callable[[Path], list[Run]],
    tables: Callable[[Sequence[Record], Mapping[str, Any]], str],
    draw: Callable[[Sequence[Record], Path], None],
) -> None:
    """Train what is missing of an experiment, and write what came out, as a command line.

    Args:
        description: of the tool.
        plan: from the folder of the trainings, which it may prepare, to the runs.
        tables: from the records and the machine to a Markdown page.
        draw: draws the records into a folder.
    """
    # Without this, a terminated tool would leave its trainings running.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    exit_with_sentence(lambda: _run(description, plan, tables, draw))


def _run(
    description: str,
    plan: Callable[[Path], list[Run]],
    tables: Callable[[Sequence[Record], Mapping[str, Any]], str],
    draw: Callable[[Sequence[Record], Path], None],
) -> None:
    args = _read_arguments(description)
    make_folder(args.out)
    runs = plan(args.work_dir)
    train_missing(runs, TRAIN, args.work_dir, args.jobs)
    records = [read_record(run, args.work_dir) for run in runs]
    torch.set_num_threads(threads_each(args.jobs))
    machine = describe(torch.device('cpu'))
    page = tables(records, machine)
    write_records(records, machine, args.out / 'runs.json')
    (args.out / 'tables.md').write_text(page + '\n')
    draw(records, args.out)
    print(page)


def _read_arguments(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        '--out', type=Path, required=True, help='the folder of the records, tables and pictures'
    )
    parser.add_argument(
        '--work-dir',
        type=Path,
        required=True,
        help='the folder of the trainings; finished ones in it are not repeated',
    )
    parser.add_argument('--jobs', type=int, default=2, help='trainings at a time (%(default)s)')
    args = parser.parse_args()
    if args.jobs < 1:
        raise UsageError(
            f'at least one training must run at a time, not {args.jobs}: give --jobs 1.'
        )
    return args
