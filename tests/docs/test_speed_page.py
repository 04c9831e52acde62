"""The page on speed shows the committed measurements."""

import json
import re
from pathlib import Path

import pytest

from studies.presentation.benchmark_tables import host_table, step_table


@pytest.fixture
def page(repo: Path) -> str:
    return (repo / 'docs/results/speed.md').read_text()


def _rows(text: str, title: str) -> dict[tuple[str, ...], list[str]]:
    """Return the cells of the first table after a title, by type, format and direction."""
    table = re.search(r'\n\n((\|.*\n)+)', text[text.index(title) :])[1]
    cells = [[cell.strip() for cell in line[1:-1].split('|')] for line in table.splitlines()[2:]]
    return {tuple(row[:3]): row[3:] for row in cells}


@pytest.mark.parametrize(
    ('place', 'title'),
    [
        ('over that of another layer', '## Maps of a detector'),
        ('fixed cost of a call', '## Fewer than 10⁵'),
    ],
)
def test_ratios_are_those_of_the_summary(place: str, title: str, page: str, repo: Path) -> None:
    shown = _rows(page, place)
    measured = _rows((repo / 'docs/speed/cpu.md').read_text(), title)
    assert shown.keys() == measured.keys()
    for case, cells in shown.items():
        assert cells[:2] == measured[case][:2]
        assert set(cells) <= set(measured[case])


def test_the_step_is_the_measured_one(page: str, repo: Path) -> None:
    assert step_table(json.loads((repo / 'docs/speed/step.json').read_text())) in page


def test_the_table_of_the_host_is_the_measured_one(repo: Path) -> None:
    data = json.loads((repo / 'docs/speed/host.json').read_text())
    assert host_table(data) in (repo / 'docs/speed/host.md').read_text()
