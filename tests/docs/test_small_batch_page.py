"""The prose on small batches agrees with the committed records."""

from pathlib import Path
from statistics import mean, stdev

import pytest

from studies.experiments.records import Record, read_records


@pytest.fixture(scope='module')
def prose(repo: Path) -> str:
    """Return the page with its lines joined."""
    return ' '.join((repo / 'docs/results/small_batch.md').read_text().split())


@pytest.fixture(scope='module')
def records(repo: Path) -> list[Record]:
    return read_records(repo / 'docs/small_batch/runs.json')[0]


def ap(records: list[Record], variant: str, batch: int) -> list[float]:
    """Return box AP in percent after the last epoch, by seed."""
    return [
        100 * record.metrics['coco/bbox_mAP'][-1]
        for record in records
        if (record.variant, record.batch) == (variant, batch)
    ]


def ratio(records: list[Record], batch: int, part: str, scope: str) -> float:
    """Return SN's mean w over the seeds."""
    return mean(
        record.ratios[part]['mean'][scope]
        for record in records
        if (record.variant, record.batch) == ('sn', batch)
    )


def test_norms(prose: str, records: list[Record]) -> None:
    bn, gn, sn = (ap(records, norm, 2) for norm in ('bn', 'gn', 'sn'))
    assert f'it is {mean(sn) - mean(bn):.1f} points of AP below SN' in prose
    assert f'and {mean(gn) - mean(bn):.1f} below GN' in prose
    assert max(bn) < min(gn + sn)
    assert 0 < mean(sn) - mean(gn) < min(stdev(sn), stdev(gn))
    assert f"SN's mean AP is {mean(sn) - mean(gn):.1f} higher" in prose
    first, second, third = (
        f'{s - g:+.1f}'.replace('-', '\N{MINUS SIGN}') for s, g in zip(sn, gn, strict=True)
    )
    assert f'{first}, {second} and {third}.' in prose
    falling = ', '.join(f'{mean(ap(records, "sn", batch)):.1f}' for batch in (1, 2, 4))
    assert f'({falling})' in prose


def test_ratios(prose: str, records: list[Record]) -> None:
    def pair(part: str) -> str:
        return ' and '.join(f'{ratio(records, batch, part, "bn"):.3f}' for batch in (2, 4))

    two, four = pair('all').split(' and ')
    assert f'w of `bn` is {two} at two images and {four} at four' in prose
    assert f'({pair("backbone")})' in prose
    assert f'({pair("neck")}, {pair("bbox_head")})' in prose
    parts, scopes, batches = ('backbone', 'neck', 'bbox_head'), ('in', 'ln', 'bn'), (1, 2, 4)
    table = {
        (b, part, scope): ratio(records, b, part, scope)
        for b in batches
        for part in parts
        for scope in scopes
    }
    assert f'further than {max(abs(w - 1 / 3) for w in table.values()):.3f} from 1/3' in prose
    ln = [table[b, 'bbox_head', 'ln'] for b in batches]
    assert f'({min(ln):.3f} to {max(ln):.3f})' in prose
    assert all(
        table[b, part, 'ln'] < 1 / 3 < table[b, part, 'in'] for b in batches for part in parts
    )
