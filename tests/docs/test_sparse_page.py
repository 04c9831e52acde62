"""The prose on sparse SN agrees with the committed records."""

from pathlib import Path
from statistics import mean

import pytest

from studies.experiments.records import Record, read_records

ACCURACY = 'batch average/accuracy/top1'


@pytest.fixture(scope='module')
def prose(repo: Path) -> str:
    """Return the page with its lines joined."""
    return ' '.join((repo / 'docs/results/sparse.md').read_text().split())


@pytest.fixture(scope='module')
def records(repo: Path) -> list[Record]:
    return read_records(repo / 'docs/sparse/runs.json')[0]


def accuracies(records: list[Record], variant: str, point: int) -> list[float]:
    return [r.metrics[ACCURACY][point] for r in records if r.variant == variant]


def test_loss_and_recovery(prose: str, records: list[Record]) -> None:
    before, right_after = (accuracies(records, variant, 0) for variant in ('dense', 'sparse'))
    lost = [f'{a - b:.1f}' for a, b in zip(before, right_after, strict=True)]
    assert f'loses {" and ".join(lost)} points' in prose
    dense, sparse = (accuracies(records, variant, 1) for variant in ('dense', 'sparse'))
    assert f'sparse {mean(sparse):.1f} %, dense {mean(dense):.1f} %' in prose
    gaps = [f'{a - b:+.1f}' for a, b in zip(sparse, dense, strict=True)]
    assert f'by seed the difference is {" and ".join(gaps)} points' in prose


def test_choices(prose: str, records: list[Record]) -> None:
    shares = [
        record.ratios['all'][kind]
        for record in records
        if record.variant == 'sparse'
        for kind in ('mean', 'var')
    ]
    assert all(max(share, key=share.get) == 'ln' for share in shares)
    chosen = mean(share['bn'] for share in shares)
    assert f'`bn` is {100 * chosen:.0f} % of the choices' in prose
