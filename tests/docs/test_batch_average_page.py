"""The prose on batch average agrees with the committed records."""

from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from studies.experiments.records import read_records

MOVING, BATCH = 'moving 0.1', 'batch average'
NORMS, PER_GPU = ('sn', 'bn'), (1, 2, 32)


@pytest.fixture(scope='module')
def prose(repo: Path) -> str:
    """Return the page on batch average with its lines joined."""
    return ' '.join((repo / 'docs/results/batch_average.md').read_text().split())


@pytest.fixture(scope='module')
def seeds(repo: Path) -> Callable[..., np.ndarray]:
    """A function (norm, images per GPU, statistics) -> accuracy, (seeds, epochs)."""
    records, _ = read_records(repo / 'docs/batch_average/runs.json')

    def find(norm: str, per_gpu: int, statistics: str) -> np.ndarray:
        key = f'{statistics}/accuracy/top1'
        found = [r.metrics[key] for r in records if (r.variant, r.batch) == (norm, per_gpu)]
        assert len(found) == 3
        return np.array(found)

    return find


def test_batch_average_is_ahead_during_the_training(prose: str, seeds: Callable) -> None:
    gaps = {
        case: (seeds(*case, BATCH) - seeds(*case, MOVING))[:, :-1]
        for case in product(NORMS, PER_GPU)
    }
    ranges = {
        case: f'{gap.mean(0).min():.1f} to {gap.mean(0).max():.1f}' for case, gap in gaps.items()
    }
    assert f'by {ranges["sn", 32]} points with SN and by {ranges["bn", 32]} with BN over' in prose
    assert f'at 2 images by {ranges["sn", 2]} and {ranges["bn", 2]}.' in prose
    behind = {case: int((gap < 0).sum()) for case, gap in gaps.items()}
    assert f'it is behind in {behind["bn", 1] + behind["bn", 2]} of 30 cases.' in prose
    assert sum(behind.values()) == behind['bn', 1] + behind['bn', 2]


def test_the_end_and_the_middle(prose: str, seeds: Callable) -> None:
    ends = [
        abs(seeds(*case, BATCH)[:, -1].mean() - seeds(*case, MOVING)[:, -1].mean())
        for case in product(NORMS, PER_GPU)
    ]
    assert f'**At the end they are equal**, within {max(ends):.1f} points.' in prose
    falls = [
        f'{norm.upper()} from {before:.1f} to {after:.1f}'
        for norm in ('bn', 'sn')
        for course in seeds(norm, 32, MOVING)
        for before, after in pairwise(course)
        if after < before
    ]
    assert f'two of the six trainings fall once ({", ".join(falls)}), with batch' in prose
    assert all((np.diff(seeds(norm, 32, BATCH)) > 0).all() for norm in NORMS)
    one = f'{seeds("bn", 1, BATCH)[:, -1].mean():.1f}'
    assert one == f'{seeds("bn", 1, MOVING)[:, -1].mean():.1f}'
    assert f'BN at 1 image**: {one} % at the end with both.' in prose


def test_the_guide(repo: Path, seeds: Callable) -> None:
    guide = ' '.join((repo / 'docs/guides/inference.md').read_text().split())
    sn, bn = ([seeds(n, 32, s)[:, 2].mean() for s in (BATCH, MOVING)] for n in NORMS)
    assert f'SN had {sn[0]:.1f} % with it and {sn[1]:.1f} % with moving averages' in guide
    assert f'BN {bn[0]:.1f} and {bn[1]:.1f}. At the end both were equal, within 0.1' in guide
