"""The page on style transfer agrees with the committed records."""

import re
from pathlib import Path

import pytest

from studies.experiments.records import read_records
from studies.presentation.style import all_tables


def test_tables_are_those_of_the_records(repo: Path) -> None:
    tables = all_tables(*read_records(repo / 'docs/style/runs.json'))
    assert tables + '\n' == (repo / 'docs/style/tables.md').read_text()


def test_tables_of_the_page_are_the_written_ones(repo: Path) -> None:
    page = (repo / 'docs/results/style.md').read_text()
    rows = re.findall(r'^\|.*\|$', page, re.MULTILINE)
    assert len(rows) == 5 + 5 + 6
    assert set(rows) <= set((repo / 'docs/style/tables.md').read_text().split('\n'))


def test_settings_of_the_page_are_those_of_the_study(repo: Path) -> None:
    style = pytest.importorskip('studies.experiments.style')
    page = ' '.join((repo / 'docs/results/style.md').read_text().split())
    example = style.example
    for said in (
        f'{style.STEPS} steps of {example.BATCH} photographs',
        f'{example.SIDE}×{example.SIDE} pixels',
        f'Adam at {example.LEARNING_RATE}',
        f'style weight of {example.STYLE_WEIGHT:g}',
        f'{style.TRAINED} to train on, {style.TESTED} to test on',
    ):
        assert said in page, said
