"""The prose on sparse SN agrees with the committed records."""

from collections.abc import Callable
from pathlib import Path
from statistics import mean

import pytest

from studies.experiments.records import Record, read_records

ACCURACY = 'batch average/accuracy/top1'
PER_GPU = (2, 32)


@pytest.fixture(scope='module')
def prose(repo: Path) -> str:
    """Return the page with its lines joined."""
    return ' '.join((repo / 'docs/results/sparse.md').read_text().split())


@pytest.fixture(scope='module')
def records(repo: Path) -> list[Record]:
    return read_records(repo / 'docs/sparse/runs.json')[0]


@pytest.fixture(scope='module')
def accuracy(records: list[Record]) -> Callable[..., float]:
    """A function (variant, images per GPU, point) -> the mean accuracy before or after."""

    def find(variant: str, per_gpu: int, point: int) -> float:
        found = [r for r in records if (r.variant, r.batch) == (variant, per_gpu)]
        assert len(found) == 3
        return mean(record.metrics[ACCURACY][point] for record in found)

    return find


def test_loss_and_recovery(prose: str, accuracy: Callable) -> None:
    before, after = (
        [f'{accuracy("dense", n, point) - accuracy("sparse", n, point):.1f}' for n in PER_GPU]
        for point in (0, 1)
    )
    assert f'{before[0]} points below the dense one at 2 images per GPU, and {before[1]}' in prose
    assert f'it is {after[0]} points below at 2 images and {after[1]} at 32.' in prose
    sparse, dense = (
        [f'{accuracy(variant, n, 1) - accuracy(variant, n, 0):.1f}' for n in PER_GPU]
        for variant in ('sparse', 'dense')
    )
    assert f'the sparse one {sparse[0]} and {sparse[1]} points, the dense one {dense[0]}' in prose


def test_choices(prose: str, records: list[Record]) -> None:
    def share(per_gpu: int, kind: str, scope: str) -> str:
        found = [r for r in records if (r.variant, r.batch) == ('sparse', per_gpu)]
        shares = [record.ratios['all'][kind] for record in found]
        assert max(max(chosen.values()) for chosen in shares) < 1
        return f'{100 * mean(chosen[scope] for chosen in shares):.0f}'

    means, variances = (share(2, kind, 'ln') for kind in ('mean', 'var'))
    assert f'At 2 images per GPU {means} % of the means and {variances} % of the variances' in prose
    means, variances = (share(32, kind, 'bn') for kind in ('mean', 'var'))
    assert f'at 32 images {means} % and {variances} % chose `bn`.' in prose
