"""What the page on ImageNet weights says in words is what the committed records say."""

import json
from pathlib import Path

import pytest

from sn_openmmlab.experiments.kept_knowledge import Kept, Start, kept_table
from sn_openmmlab.layers.from_batch_norm import BATCH_RATIO


@pytest.fixture(scope='module')
def page(repo: Path) -> str:
    return (repo / 'docs/from_imagenet.md').read_text()


@pytest.fixture(scope='module')
def prose(page: str) -> str:
    """The page with its lines joined."""
    return ' '.join(page.split())


@pytest.fixture(scope='module')
def kept(repo: Path) -> dict[Start, Kept]:
    entries = json.loads((repo / 'docs/from_imagenet/kept.json').read_text())['kept']
    found = {}
    for entry in entries:
        values = entry.pop('start')
        start = Start(tuple(values['mean']), tuple(values['var']), values['fitted'])
        found[start] = Kept(start, **entry)
    return found


def at(ratio: float, fitted: bool = False) -> Start:
    even = ((1 - ratio) / 2, (1 - ratio) / 2, ratio)
    return Start(even, even, fitted)


def test_table_is_that_of_the_record(repo: Path, page: str, kept: dict) -> None:
    table = kept_table(list(kept.values()))
    assert table in page
    assert table == (repo / 'docs/from_imagenet/kept.md').read_text().strip()


def test_what_the_page_says_of_single_scopes_and_statistics(prose: str, kept: dict) -> None:
    alone, tenth = (0.0, 0.0, 1.0), (0.05, 0.05, 0.9)
    percent = {start: f'{100 * value.agreement:.1f} %' for start, value in kept.items()}
    instance, layer = (Start(share, share) for share in ((0.1, 0.0, 0.9), (0.0, 0.1, 0.9)))
    assert kept[layer].agreement == 0
    assert f'A tenth of `ln` leaves nothing, a tenth of `in` {percent[instance]}.' in prose
    means, variances = percent[Start(tenth, alone)], percent[Start(alone, tenth)]
    assert f'in the means alone keeps {means}, in the variances alone {variances}.' in prose
    assert kept[at(0.999)].agreement > 0.95
    assert 0.15 < kept[at(0.9)].agreement < 0.25
    assert kept[at(0.6)].agreement == 0


def test_what_the_page_says_of_fitting(prose: str, kept: dict) -> None:
    for ratio in (0.97, 0.99):
        plain, fitted = kept[at(ratio)].divergence, kept[at(ratio, True)].divergence
        assert f'at {ratio}' in prose.lower()
        assert f'from {plain:.3f} to {fitted:.3f}' in prose
    assert kept[at(1 / 3)].agreement == 0
    assert 0.3 < kept[at(1 / 3, True)].agreement < 0.4


def test_what_other_pages_say_of_the_default(repo: Path, kept: dict) -> None:
    assert BATCH_RATIO == 0.99
    pages = ' '.join((repo / 'docs/from_batch_norm.md').read_text().split())
    default, before = (f'{100 * kept[at(ratio)].agreement:.0f} %' for ratio in (0.99, 0.9))
    assert f'keeps the answer on {default} of new photographs, and 0.9 on {before}' in pages
    assert f'`bn` start at a ratio of {BATCH_RATIO}' in (repo / 'README.md').read_text()
