"""Build every config of the zoos with SN by --norm, and train a sample of them for a step.

python -m studies.zoo --out docs/zoo
"""

import argparse
import logging
import warnings
from collections.abc import Iterator
from importlib.metadata import packages_distributions, version
from pathlib import Path

import torch
from mmengine.logging import MMLogger

from sn_openmmlab.errors import exit_with_sentence
from studies.presentation.machine import describe
from studies.presentation.output import make_folder, write_data
from studies.presentation.zoo_tables import zoo_tables
from studies.zoos.configs import TOOLBOXES, find_configs
from studies.zoos.records import Record, append_records, read_records, read_runs, run_file
from studies.zoos.sample import SAMPLE
from studies.zoos.survey import survey
from studies.zoos.trials import try_all

STEPS = 'steps'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument(
        '--out', type=Path, required=True, help='the folder of the records, where a run goes on'
    )
    parser.add_argument(
        '--parts',
        nargs='+',
        choices=(*TOOLBOXES, STEPS),
        default=(*TOOLBOXES, STEPS),
        help='the zoos whose configs to build, and the sample that trains (default: all)',
    )
    args = parser.parse_args()
    make_folder(args.out)
    _be_quiet()
    owners = packages_distributions()
    names = [owners[package][0] for package in ('mmengine', *TOOLBOXES)]
    stack = 'onedl' if names[0].startswith('onedl-') else 'openmmlab'
    versions = {name: version(name) for name in names}
    machine = describe(torch.device('cpu'))
    write_data({'machine': machine, 'versions': versions}, args.out / f'{stack}.json')
    for part in args.parts:
        file = run_file(args.out, stack, part)
        done = {record['config'] for record in read_records(file)}
        for count, record in enumerate(append_records(_records(part, done), file), 1):
            print(f'{part} {count}: {record["config"]}', flush=True)
    (args.out / 'tables.md').write_text(zoo_tables(read_runs(args.out)))


def _records(part: str, done: set[str]) -> Iterator[Record]:
    """Return the records of the configs that are not done."""
    if part == STEPS:
        return try_all((name, path) for name in SAMPLE for path in SAMPLE[name] if path not in done)
    return survey(part, [path for path in find_configs(part) if path not in done])


def _be_quiet() -> None:
    """Leave out what the toolboxes say about every model."""
    warnings.filterwarnings('ignore')
    MMLogger.get_instance('mmengine', log_level=logging.ERROR)


if __name__ == '__main__':
    exit_with_sentence(main)
