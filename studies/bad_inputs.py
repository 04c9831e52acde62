"""Make mistakes in good configs and data, and say what our tools make of each.

python -m studies.bad_inputs --out docs/bad_inputs
"""

import argparse
from collections.abc import Iterable
from importlib.metadata import packages_distributions, version
from pathlib import Path

import torch

from sn_openmmlab.errors import UsageError, exit_with_sentence
from studies.mistakes.case import Case
from studies.mistakes.notes import NOTES
from studies.mistakes.outcome import Outcome
from studies.mistakes.running_suite import run_suite
from studies.presentation.bad_input_tables import Record, bad_input_tables
from studies.presentation.machine import describe
from studies.presentation.output import make_folder, write_data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--out', type=Path, required=True, help='the folder of the results')
    parser.add_argument('--sample', type=int, help='make only so many of the mistakes, drawn')
    args = parser.parse_args()
    make_folder(args.out)
    records, bad = [], 0
    for title, case, outcome in run_suite(args.sample):
        records.append(_record(title, case, outcome))
        bad += not is_good(records[-1])
        sign = 'ok ' if is_good(records[-1]) else 'BAD'
        print(f'{sign} {outcome.ends}: {case.name}: {" ".join(outcome.said)}', flush=True)
    about = {'machine': describe(torch.device('cpu')), 'versions': _versions()}
    write_data({**about, 'records': records}, args.out / 'outcomes.json')
    (args.out / 'tables.md').write_text(bad_input_tables(records))
    if bad:
        raise UsageError(f'{bad} of {len(records)} mistakes end badly: see the lines with BAD.')


def is_good(record: Record) -> bool:
    """Return whether a mistake ends well: in a sentence, or in a run that is not silent."""
    if record['ends'] == 'sentence':
        return record['code'] == 2
    return record['ends'] in ('trains', 'tests') and bool(record['said'] or record['note'])


def _record(title: str, case: Case, outcome: Outcome) -> Record:
    runs = outcome.ends in ('trains', 'tests')
    return dict(
        part=title,
        task=case.task,
        tool=case.tool,
        change=case.change,
        ends=outcome.ends,
        code=outcome.code,
        said=outcome.said,
        note=NOTES.get(case.change, '') if runs and not outcome.said else '',
    )


def _versions() -> dict[str, str]:
    owners = packages_distributions()
    names: Iterable[str] = ('mmengine', 'mmcv', 'mmdet', 'mmseg', 'mmpretrain')
    return {owners[name][0]: version(owners[name][0]) for name in names}


if __name__ == '__main__':
    exit_with_sentence(main)
