"""The prose on longer trainings of the detector agrees with the committed records."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from studies.experiments.longer_detection import chosen_rates
from studies.experiments.records import Record, read_records

MOVING, BATCH, SLOW = 'moving 0.1', 'batch average', 'moving 0.003'


@pytest.fixture(scope='module')
def prose(repo: Path) -> str:
    """Return the page with its lines joined."""
    return ' '.join((repo / 'docs/results/longer_detection.md').read_text().split())


@pytest.fixture(scope='module')
def records(repo: Path) -> list[Record]:
    return read_records(repo / 'docs/longer_detection/runs.json')[0]


@pytest.fixture(scope='module')
def courses(records: list[Record]) -> Callable[..., np.ndarray]:
    """A function (norm, statistics) -> box AP in percent, (seeds, quarters of the training)."""

    def find(norm: str, statistics: str = MOVING) -> np.ndarray:
        found = [r.metrics[f'{statistics}/coco/bbox_mAP'] for r in records if r.variant == norm]
        assert len(found) == 3
        return 100 * np.array(found)

    return find


def test_norms(prose: str, courses: Callable) -> None:
    sn, gn, bn = (courses(norm) for norm in ('sn', 'gn', 'bn'))
    above = f'by {sn[:, -1].mean() - gn[:, -1].mean():.1f} points of AP'
    assert f'**SN ends ahead of GN {above}, and of BN by' in prose
    assert f'and of BN by {sn[:, -1].mean() - bn[:, -1].mean():.1f}**' in prose
    assert sn[:, -1].min() > max(gn[:, -1].max(), bn[:, -1].max())
    early = (f'{x[:, 0].mean():.1f}' for x in (sn, gn, bn))
    assert 'the first quarter SN has {}, GN {} and BN {}'.format(*early) in prose


def test_statistics(prose: str, courses: Callable) -> None:
    def gap(norm: str, statistics: str) -> np.ndarray:
        return (courses(norm, statistics) - courses(norm)).mean(0)

    assert np.abs([gap(norm, BATCH)[-1] for norm in ('sn', 'bn')]).max() < 0.25
    *bn, _ = gap('bn', BATCH)
    assert 'ahead by {:.1f}, {:.1f} and {:.1f} points with BN'.format(*bn) in prose
    *sn, _ = gap('sn', BATCH)
    assert 'by {:.1f}, {:.1f} and {:.1f} with SN'.format(*sn) in prose
    assert f'{-gap("bn", SLOW)[0]:.1f} points behind with BN after the first quarter' in prose


def test_rates(prose: str, records: list[Record]) -> None:
    rates = chosen_rates(records)
    assert f'SN {rates["sn"]}, GN {rates["gn"]} and BN {rates["bn"]}' in prose
