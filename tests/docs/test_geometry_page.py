"""The page on the geometry agrees with its records."""

import json
import re
from pathlib import Path

import pytest

pytest.importorskip('skimage')
from studies.experiments.geometry import Assumption, Gamma, Length
from studies.presentation.geometry import all_tables


def test_tables_are_those_of_the_records(repo: Path) -> None:
    found = json.loads((repo / 'docs/geometry/measured.json').read_text())
    kinds = {'lengths': Length, 'gammas': Gamma, 'assumptions': Assumption}
    parts = {name: [kind(**row) for row in found[name]] for name, kind in kinds.items()}
    assert all_tables(**parts) + '\n' == (repo / 'docs/geometry/tables.md').read_text()


def test_tables_of_the_page_are_the_written_ones(repo: Path) -> None:
    page = (repo / 'docs/results/geometry.md').read_text()
    rows = re.findall(r'^\|.*\|$', page, re.MULTILINE)
    assert len(rows) == 10 + 8 + 5
    assert set(rows) <= set((repo / 'docs/geometry/tables.md').read_text().split('\n'))
