"""The prose on starts from a BatchNorm classifier agrees with the committed records."""

from pathlib import Path
from statistics import mean, stdev

import pytest

from studies.experiments.records import Record, read_records

RATIOS = ('sn-0.33', 'sn-0.60', 'sn-0.90', 'sn-1.00')


@pytest.fixture(scope='module')
def prose(repo: Path) -> str:
    """Return the page with its lines joined."""
    return ' '.join((repo / 'docs/results/from_batch_norm.md').read_text().split())


@pytest.fixture(scope='module')
def records(repo: Path) -> list[Record]:
    return read_records(repo / 'docs/from_batch_norm/runs.json')[0]


@pytest.fixture(scope='module')
def ap(records: list[Record]) -> dict[str, list[float]]:
    """Return box AP in percent after the last epoch, by variant, of each seed."""
    found: dict[str, list[float]] = {}
    for record in records:
        found.setdefault(record.variant, []).append(100 * record.metrics['coco/bbox_mAP'][-1])
    return found


def test_overview_of_the_results(repo: Path, ap: dict) -> None:
    page = (repo / 'docs/results/index.md').read_text()
    ours, scratch, frozen = (mean(ap[f'{v}-long']) for v in ('sn-0.90', 'scratch', 'frozen-bn'))
    assert f'box AP {ours:.1f} with SN from a BN classifier, {scratch:.1f} with SN from' in page
    assert f'{frozen:.1f} with that BN frozen' in page


def test_gain_of_starts(prose: str, ap: dict) -> None:
    pretrained = ['frozen-bn', *RATIOS]
    gain = min(mean(ap[variant]) for variant in pretrained) - mean(ap['scratch'])
    later = min(mean(ap[f'{v}-long']) for v in ('frozen-bn', 'sn-0.90')) - mean(ap['scratch-long'])
    assert f'it is {gain:.1f} points of AP above' in prose
    assert f'after four {later:.1f}.' in prose


def test_lead_of_frozen_batch_norm(prose: str, ap: dict) -> None:
    best = max(mean(ap[variant]) for variant in RATIOS)
    later = mean(ap['frozen-bn-long']) - mean(ap['sn-0.90-long'])
    assert f'{mean(ap["frozen-bn"]) - best:.1f} points above the best ratio' in prose
    assert f'{later:.1f} above a ratio of 0.9 after four' in prose
    assert min(ap['frozen-bn']) > max(max(ap[variant]) for variant in RATIOS)
    assert min(ap['frozen-bn-long']) > max(ap['sn-0.90-long'])


def test_effect_of_the_ratio(prose: str, ap: dict, records: list[Record]) -> None:
    means = [mean(ap[variant]) for variant in RATIOS]
    first, second, third, fourth = (f'{value:.1f}' for value in means)
    assert f'{first}, {second}, {third} and {fourth} for 1/3, 0.6, 0.9 and 1' in prose
    assert min(means) == means[1]
    others = [means[0], *means[2:]]
    assert max(others) - min(others) < max(stdev(ap[v]) for v in RATIOS if v != 'sn-0.60')
    for variant, words in (('sn-0.90', 'is {} after two'), ('sn-0.90-long', 'from 0.9, {} after')):
        learned = [r.ratios['backbone']['mean']['bn'] for r in records if r.variant == variant]
        assert words.format(f'{mean(learned):.3f}') in prose
