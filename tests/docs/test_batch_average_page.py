"""The prose on batch average agrees with the committed records."""

from collections.abc import Callable
from itertools import product
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
def course(repo: Path) -> Callable[..., np.ndarray]:
    """A function (norm, images per GPU, statistics) -> the mean accuracy after each epoch."""
    records, _ = read_records(repo / 'docs/batch_average/runs.json')

    def find(norm: str, per_gpu: int, statistics: str) -> np.ndarray:
        key = f'{statistics}/accuracy/top1'
        found = [r.metrics[key] for r in records if (r.variant, r.batch) == (norm, per_gpu)]
        assert len(found) == 3
        return np.mean(found, 0)

    return find


def test_batch_average_is_ahead_during_the_training(prose: str, course: Callable) -> None:
    gaps = {
        case: (course(*case, BATCH) - course(*case, MOVING))[:-1]
        for case in product(NORMS, PER_GPU)
    }
    assert min(map(min, gaps.values())) > 0
    sn, bn, sn_small, bn_small = (
        f'{gaps[case].min():.1f} to {gaps[case].max():.1f}'
        for case in (('sn', 32), ('bn', 32), ('sn', 2), ('bn', 2))
    )
    assert f'by {sn} points with SN and by {bn} with BN over the first five epochs' in prose
    assert f'at 2 images by {sn_small} and {bn_small}.' in prose


def test_the_end_and_the_middle(prose: str, course: Callable) -> None:
    ends = [
        abs(course(*case, BATCH)[-1] - course(*case, MOVING)[-1])
        for case in product(NORMS, PER_GPU)
    ]
    assert f'**At the end they are equal**, within {max(ends):.1f} points.' in prose
    falls, rises = (course('bn', 32, statistics)[1:3] for statistics in (MOVING, BATCH))
    assert falls[0] > falls[1] and rises[0] < rises[1]
    assert f'falls from {falls[0]:.1f} after a third of the training to {falls[1]:.1f}' in prose
    assert f'it rises, from {rises[0]:.1f} to {rises[1]:.1f}.' in prose
    assert (np.diff(course('bn', 32, BATCH)) > 0).all()
    one = f'{course("bn", 1, BATCH)[-1]:.1f}'
    assert one == f'{course("bn", 1, MOVING)[-1]:.1f}'
    assert f'BN at 1 image**: {one} % at the end with both.' in prose


def test_the_guide(repo: Path, course: Callable) -> None:
    guide = ' '.join((repo / 'docs/guides/inference.md').read_text().split())
    sn, bn = ([course(n, 32, s)[2] for s in (BATCH, MOVING)] for n in NORMS)
    assert f'SN had {sn[0]:.1f} % with it and {sn[1]:.1f} % with moving averages' in guide
    assert f'BN {bn[0]:.1f} and {bn[1]:.1f}. At the end both were equal, within 0.1' in guide
