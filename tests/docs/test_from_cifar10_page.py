"""The prose on detectors from a classifier of CIFAR-10 agrees with the committed records."""

from pathlib import Path
from statistics import mean

import pytest

from studies.experiments.records import read_records

AP = 'coco/bbox_mAP'


@pytest.fixture(scope='module')
def ap(repo: Path) -> dict[tuple[str, int], float]:
    """Return the last box AP by start and seed."""
    records, _ = read_records(repo / 'docs/from_cifar10/runs.json')
    return {(r.variant, r.seed): r.metrics[AP][-1] for r in records}


def test_page(repo: Path, ap: dict[tuple[str, int], float]) -> None:
    gains = sorted(ap['pretrained', seed] - ap['scratch', seed] for seed in range(3))
    assert gains[0] < 0 == gains[1] < gains[2]
    assert abs(mean(gains)) < 0.001
    page = ' '.join((repo / 'docs/results/from_cifar10.md').read_text().split())
    assert 'Each start was ahead in one seed, and in the third they are equal' in page


def test_overview(repo: Path, ap: dict[tuple[str, int], float]) -> None:
    for start in ('scratch', 'pretrained'):
        assert f'{100 * mean(ap[start, seed] for seed in range(3)):.1f}' == '2.9'
    page = (repo / 'docs/results/index.md').read_text()
    assert 'box AP 2.9 after 200 iterations, from random weights and from a classifier' in page
