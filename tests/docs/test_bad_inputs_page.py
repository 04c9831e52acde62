"""The page on bad inputs agrees with the committed records."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from studies.presentation.bad_input_tables import bad_input_tables


@pytest.fixture(scope='module')
def records(repo: Path) -> list[dict[str, Any]]:
    return json.loads((repo / 'docs/bad_inputs/outcomes.json').read_text())['records']


def test_tables_are_those_of_the_records(repo: Path, records: list) -> None:
    tables = (repo / 'docs/bad_inputs/tables.md').read_text()
    assert tables == bad_input_tables(records)
    page = (repo / 'docs/results/bad_inputs.md').read_text()
    rows = re.findall(r'^\|.*\|$', page, re.MULTILINE)
    assert len(rows) == 2 + 7 + 1
    assert set(rows) <= set(tables.splitlines())


def test_every_mistake_ends_well(records: list) -> None:
    for record in records:
        assert record['ends'] in ('trains', 'tests', 'sentence')
        assert (record['code'] == 2) == (record['ends'] == 'sentence')
        assert record['said'] or record['note'], record
        # In a table of one line each, and one sentence.
        assert all('\n' not in said and 'Traceback' not in said for said in record['said'])


@pytest.mark.parametrize(
    'page',
    [
        'docs/results/bad_inputs.md',
        'docs/results/index.md',
        'docs/what_works.md',
        'docs/guides/train_and_test.md',
        'docs/reference/tools.md',
        'CHANGELOG.md',
    ],
)
def test_pages_state_the_number(page: str, repo: Path, records: list) -> None:
    assert f'{len(records)}' in (repo / page).read_text()


def test_no_path_of_a_machine_is_shown(repo: Path) -> None:
    for name in ('outcomes.json', 'tables.md'):
        text = (repo / 'docs/bad_inputs' / name).read_text()
        assert not re.search(r'/(?:tmp|home|root|usr|opt|venv|site-packages)\b', text)
