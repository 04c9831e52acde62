"""Train BN, GN and SN from scratch at small batches; write records, tables and pictures.

python tools/small_batch.py --out docs/small_batch --work-dir work_dirs/small_batch
"""

import argparse
import signal
import sys
from pathlib import Path

import torch

from sn_openmmlab.benchmarks.machine import describe
from sn_openmmlab.errors import UsageError
from sn_openmmlab.experiments.folders import make_folder
from sn_openmmlab.experiments.plan import small_batch_runs
from sn_openmmlab.experiments.pool import threads_each, train_missing
from sn_openmmlab.experiments.records import read_record, write_records
from sn_openmmlab.experiments.small_batch import all_tables, draw_figures
from sn_openmmlab.runs.command_line import exit_with_sentence


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
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
    make_folder(args.out)

    runs = small_batch_runs()
    train_missing(runs, Path(__file__).with_name('train.py'), args.work_dir, args.jobs)
    records = [read_record(run, args.work_dir) for run in runs]
    torch.set_num_threads(threads_each(args.jobs))
    machine = describe(torch.device('cpu'))
    tables = all_tables(records, machine)
    write_records(records, machine, args.out / 'runs.json')
    (args.out / 'tables.md').write_text(tables + '\n')
    draw_figures(records, args.out)
    print(tables)


if __name__ == '__main__':
    # Without this, a terminated tool would leave its trainings running.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    exit_with_sentence(main)
