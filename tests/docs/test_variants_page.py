"""The page on the variants agrees with the committed records."""

import re
from pathlib import Path

import pytest

from studies.experiments.records import Record, read_records

PARTS = ('groups', 'lstm', 'video')
ACCURACY = 'accuracy/top1'


@pytest.fixture(scope='module')
def page(repo: Path) -> str:
    return (repo / 'docs/guides/variants.md').read_text()


@pytest.fixture(scope='module')
def records(repo: Path) -> dict[str, list[Record]]:
    return {part: read_records(repo / f'docs/variants/{part}.json')[0] for part in PARTS}


def reached(records: list[Record], variant: str, metric: str = ACCURACY) -> list[float]:
    """Return the last value of a metric, by seed."""
    return [record.metrics[metric][-1] for record in records if record.variant == variant]


def test_tables_are_those_of_the_records(repo: Path, records: dict[str, list[Record]]) -> None:
    experiment = pytest.importorskip('studies.experiments.variants')
    _, machine = read_records(repo / 'docs/variants/groups.json')
    tables = (repo / 'docs/variants/tables.md').read_text()
    assert experiment.all_tables(records, machine) + '\n' == tables


def test_tables_of_the_page_are_the_written_ones(repo: Path, page: str) -> None:
    rows = re.findall(r'^\|.*\|$', page, re.MULTILINE)
    assert len(rows) == 4 + 5 + 3 + 5
    assert set(rows) <= set((repo / 'docs/variants/tables.md').read_text().split('\n'))
