"""Mistakes in configs and data end as the committed table says: a drawn part, and slowly all."""

import json
import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('mmdet')
pytest.importorskip('mmseg')
pytest.importorskip('mmpretrain')

from studies.bad_inputs import is_good
from tests.processes import CAN_FORK

pytestmark = pytest.mark.skipif(not CAN_FORK, reason='each mistake is made in a fork')
SAMPLE = 30


@pytest.fixture(scope='module')
def committed(repo: Path) -> dict[str, Any]:
    return json.loads((repo / 'docs/bad_inputs/outcomes.json').read_text())


def key(record: dict) -> tuple[str, str, str]:
    return record['task'], record['tool'], record['change']


def made(run_tool: Callable, repo: Path, folder: Path, *options: object) -> list[dict]:
    run_tool(repo / 'studies/bad_inputs.py', '--out', folder, *options)
    return json.loads((folder / 'outcomes.json').read_text())['records']


def check(records: list[dict], committed: dict[str, Any]) -> None:
    expected = {key(record): record for record in committed['records']}
    for record in records:
        assert is_good(record), record
        known = expected[key(record)]
        assert (record['ends'], record['code']) == (known['ends'], known['code']), record
        # Other versions of the toolboxes and of torch use other words.
        if _same_versions(committed):
            assert list(map(_words, record['said'])) == list(map(_words, known['said']))
            assert record['note'] == known['note']


def _same_versions(committed: dict[str, Any]) -> bool:
    import torch

    try:
        here = {name: version(name) for name in committed['versions']}
    except ModuleNotFoundError:
        return False
    return here == committed['versions'] and torch.__version__ == committed['machine']['torch']


def _words(said: str) -> str:
    """Return a sentence without its numbers: another processor may diverge an iteration later."""
    return re.sub(r'\d+', '#', said)


def test_drawn_mistakes_end_as_the_table_says(
    run_tool: Callable, repo: Path, committed: dict, tmp_path: Path
) -> None:
    records = made(run_tool, repo, tmp_path, '--sample', SAMPLE)
    assert len(records) == SAMPLE
    check(records, committed)


@pytest.mark.slow
def test_all_mistakes_end_as_the_table_says(
    run_tool: Callable, repo: Path, committed: dict, tmp_path: Path
) -> None:
    records = made(run_tool, repo, tmp_path)
    assert list(map(key, records)) == list(map(key, committed['records']))
    check(records, committed)
