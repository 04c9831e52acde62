"""The tables and pages of each experiment agree with its committed records."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from studies.experiments import (
    batch_average,
    claims,
    claims_runs,
    from_batch_norm,
    from_cifar10,
    longer_detection,
    small_batch,
    sparse,
)
from studies.experiments.plan import Run, small_batch_runs
from studies.experiments.records import read_records


class Experiment(NamedTuple):
    """An experiment: its records are in docs/NAME, its page is in docs/results."""

    name: str
    runs: list[Run]
    all_tables: Callable
    pictures: set[str]

    def read(self, repo: Path, file: str) -> str:
        return (repo / 'docs' / file.format(self.name)).read_text()


EXPERIMENTS = [
    Experiment('small_batch', small_batch_runs(), small_batch.all_tables, {'ap', 'ratios'}),
    Experiment(
        'from_batch_norm',
        from_batch_norm.fine_tunings('fine_tuning.py'),
        from_batch_norm.all_tables,
        {'ap'},
    ),
    Experiment(
        'claims', claims_runs.planned_runs(Path('work')), claims.all_tables, {'accuracy', 'ratios'}
    ),
    Experiment(
        'from_cifar10',
        from_cifar10.detectors(Path('epoch_1.pth')),
        from_cifar10.all_tables,
        {'ap'},
    ),
    Experiment(
        'longer_detection',
        longer_detection.pilot_runs(Path('work')) + longer_detection.final_runs(Path('work')),
        longer_detection.all_tables,
        {'ap', 'course'},
    ),
    Experiment(
        'batch_average',
        batch_average.compared(claims_runs.planned_runs(Path('work'))),
        batch_average.all_tables,
        {'course'},
    ),
    Experiment(
        'sparse',
        sparse.fine_tunings(
            (
                (run, Path('epoch_6.pth'))
                for run in sparse.starts(claims_runs.planned_runs(Path('work')))
            ),
            Path('work'),
        ),
        sparse.all_tables,
        {'accuracy'},
    ),
]


@pytest.fixture(params=EXPERIMENTS, ids=lambda experiment: experiment.name)
def experiment(request: pytest.FixtureRequest) -> Experiment:
    """Return each experiment in turn."""
    return request.param


def test_records_cover_the_plan(experiment: Experiment, repo: Path) -> None:
    records, _ = read_records(repo / 'docs' / experiment.name / 'runs.json')
    planned = [(run.variant, run.batch, run.seed) for run in experiment.runs]
    assert [(record.variant, record.batch, record.seed) for record in records] == planned


def test_tables_agree_with_the_records(experiment: Experiment, repo: Path) -> None:
    tables = experiment.all_tables(*read_records(repo / 'docs' / experiment.name / 'runs.json'))
    assert tables + '\n' == experiment.read(repo, '{}/tables.md')


def test_tables_of_the_page_are_the_written_ones(experiment: Experiment, repo: Path) -> None:
    # The claims are a table of their own; the tables of their study follow.
    page = experiment.read(repo, 'results/{}.md').rpartition('\n## The study')[2]
    rows = re.findall(r'^\|.*\|$', page, re.MULTILINE)
    assert len(rows) > 3
    assert set(rows) <= set(experiment.read(repo, '{}/tables.md').split('\n'))


def test_pictures_and_files_of_the_page_exist(experiment: Experiment, repo: Path) -> None:
    files = re.findall(r'\]\((.*?)\)', experiment.read(repo, 'results/{}.md'))
    pictures = {f'../{experiment.name}/{picture}.png' for picture in experiment.pictures}
    assert {file for file in files if file.endswith('.png')} == pictures
    assert all((repo / 'docs/results' / file.partition('#')[0]).exists() for file in files)
