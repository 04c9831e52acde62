"""The command line of every experiment."""

import argparse
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from sn_openmmlab.errors import UsageError, exit_with_sentence
from studies.experiments.folders import is_finished, settings_digest
from studies.experiments.plan import Run
from studies.experiments.pool import threads_each, train_missing
from studies.experiments.records import Record, read_record, read_records, write_records
from studies.presentation.machine import describe
from studies.presentation.output import make_folder

ROOT = Path(__file__).resolve().parents[2]
TRAIN = ROOT / 'tools/train.py'


def run_experiment(
    description: str,
    prepare: Callable[[Path], list[Run]],
    all_tables: Callable[[Sequence[Record], Mapping[str, Any]], str],
    draw_figures: Callable[[Sequence[Record], Path], None],
    read: Callable[[Run, Path], Record] = read_record,
    follow: Callable[[Path, Sequence[Record]], list[Run]] | None = None,
) -> None:
    """Run an experiment as a command line: train the missing runs, then write the results.

    A run is not missing if its work folder is finished, or if the records of the results hold one
    of the same settings. So another machine can go on where one ended.

    Args:
        description: of the command; its first line is shown by `--help`.
        prepare: writes what the trainings need into their folder, and returns the runs.
        all_tables: turns the records and the machine into a Markdown page.
        draw_figures: draws the records into a folder.
        read: from a finished run and the folder of all work folders to its record.
        follow: returns the runs that follow, from the folder and the records of all before.
    """

    def main() -> None:
        args = _read_arguments(description)
        # The configs and the data are named from there, also in the records.
        if Path.cwd() != ROOT:
            raise UsageError(f'run this in the root of the repository: cd {ROOT}.')
        make_folder(args.out)
        known, known_machine = _recorded(args.out / 'runs.json')
        runs = prepare(args.work_dir)
        records = _finish(runs, known, args, read)
        if follow and len(records) == len(runs):
            records += _finish(follow(args.work_dir, records), known, args, read)
        if not records:
            raise UsageError(f'no training in {args.work_dir} is finished: leave out --finished.')
        torch.set_num_threads(threads_each(args.jobs))
        reused = [record.settings in known for record in records]
        own = {} if all(reused) else describe(torch.device('cpu'))
        machine = _both(known_machine if any(reused) else {}, own)
        page = all_tables(records, machine)
        write_records(records, machine, args.out / 'runs.json')
        (args.out / 'tables.md').write_text(page + '\n')
        draw_figures(records, args.out)
        print(page)

    # So that a terminated command ends its trainings too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    exit_with_sentence(main)


def _recorded(file: Path) -> tuple[dict[str, Record], dict[str, Any]]:
    """Return the records of a file by the digests of their settings, and their machine."""
    records, machine = read_records(file) if file.exists() else ([], {})
    return {record.settings: record for record in records if record.settings}, machine


def _finish(
    runs: Sequence[Run],
    known: Mapping[str, Record],
    args: argparse.Namespace,
    read: Callable[[Run, Path], Record],
) -> list[Record]:
    """Train the missing runs unless `--finished` is given; return the records of the finished."""
    if not args.finished:
        missing = [run for run in runs if settings_digest(run) not in known]
        train_missing(missing, TRAIN, args.work_dir, args.jobs)
    found = [_result(run, known, args.work_dir, read) for run in runs]
    return [record for record in found if record]


def _both(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of two machines, as `A, B` where they differ; one may be empty."""
    both = {**first, **second}
    for name in first.keys() & second.keys():
        if str(second[name]) not in str(first[name]).split(', '):
            both[name] = f'{first[name]}, {second[name]}'
        else:
            both[name] = first[name]
    return both


def _result(
    run: Run,
    known: Mapping[str, Record],
    work_dir: Path,
    read: Callable[[Run, Path], Record],
) -> Record | None:
    """Return the record of a run from the known ones or its work folder, if it is finished."""
    if record := known.get(settings_digest(run)):
        # The plan may call it by another name since.
        return replace(record, variant=run.variant, batch=run.batch, seed=run.seed)
    return read(run, work_dir) if is_finished(run, work_dir) else None


def _read_arguments(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description.split('\n')[0])
    parser.add_argument(
        '--out', type=Path, required=True, help='the folder of the records, tables and figures'
    )
    parser.add_argument(
        '--work-dir',
        type=Path,
        required=True,
        help='the folder of the trainings; finished ones in it are not repeated',
    )
    parser.add_argument('--jobs', type=int, default=2, help='trainings at a time (%(default)s)')
    parser.add_argument(
        '--finished',
        action='store_true',
        help='write the results of the trainings that are finished, and train only what others '
        'start from',
    )
    args = parser.parse_args()
    if args.jobs < 1:
        raise UsageError(
            f'at least one training must run at a time, not {args.jobs}: give --jobs 1.'
        )
    return args
