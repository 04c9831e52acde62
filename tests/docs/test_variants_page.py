"""The page on the variants agrees with the committed records."""

import re
from pathlib import Path
from statistics import mean, stdev

import pytest

from studies.experiments.records import Record, read_records

PARTS = ('groups', 'lstm', 'video')
ACCURACY = 'accuracy/top1'


@pytest.fixture(scope='module')
def page(repo: Path) -> str:
    return (repo / 'docs/guides/variants.md').read_text()


@pytest.fixture(scope='module')
def records(repo: Path) -> dict[str, list[Record]]:
    return {part: read_records(repo / f'docs/variants/{part}.json')[0] for part in PARTS}


def reached(records: list[Record], variant: str, metric: str = ACCURACY) -> list[float]:
    """Return the last value of a metric, by seed."""
    return [record.metrics[metric][-1] for record in records if record.variant == variant]


def test_tables_are_those_of_the_records(repo: Path, records: dict[str, list[Record]]) -> None:
    experiment = pytest.importorskip('studies.experiments.variants')
    _, machine = read_records(repo / 'docs/variants/groups.json')
    tables = (repo / 'docs/variants/tables.md').read_text()
    assert experiment.all_tables(records, machine) + '\n' == tables


def test_tables_of_the_page_are_the_written_ones(repo: Path, page: str) -> None:
    rows = re.findall(r'^\|.*\|$', page, re.MULTILINE)
    assert len(rows) == 4 + 5 + 3 + 5
    assert set(rows) <= set((repo / 'docs/variants/tables.md').read_text().split('\n'))


def test_prose_on_groups(page: str, records: dict[str, list[Record]]) -> None:
    one, two = (reached(records['groups'], variant) for variant in '12')
    assert 0 < mean(two) - mean(one) < min(stdev(one), stdev(two))
    assert sum(a > b for a, b in zip(one, two, strict=True)) == 1
    gaps: dict[tuple[str, str], list[float]] = {}
    for record in (r for r in records['groups'] if r.variant == '2'):
        for name, first in record.ratios.items():
            if name.endswith('(group 1)'):
                second = record.ratios[name.replace('1)', '2)')]
                for kind in ('mean', 'var'):
                    gap = max(abs(first[kind][k] - second[kind][k]) for k in first[kind])
                    gaps.setdefault((kind, name), []).append(gap)
    means, variances = (
        [mean(values) for (of, _), values in gaps.items() if of == kind] for kind in ('mean', 'var')
    )
    said = ' '.join(page.split())
    assert f'by {min(means):.3f} to {max(means):.3f} in `w`' in said
    assert f'by {min(variances):.3f} to {max(variances):.3f} in `w′`' in said


def test_prose_on_the_lstm(page: str, records: dict[str, list[Record]]) -> None:
    norms = [reached(records['lstm'], norm) for norm in ('LN', 'GN', 'SN')]
    means = [mean(values) for values in norms]
    assert f'within {max(means) - min(means):.1f} points' in page
    assert max(means) - min(means) < min(stdev(values) for values in norms)
    for record in (r for r in records['lstm'] if r.variant == 'SN'):
        assert record.ratios['all']['mean']['ln'] > 0.6
        assert abs(record.ratios['all']['var']['ln'] - 0.5) < 0.05


def test_prose_on_video(records: dict[str, list[Record]]) -> None:
    images, scratch, pretrained = records['video'][0].metrics
    for norm in ('BN', 'GN', 'SN'):
        starts = (reached(records['video'], norm, start) for start in (scratch, pretrained))
        assert max(next(starts)) < min(next(starts))
    for start in (scratch, pretrained):
        bn, gn, sn = (reached(records['video'], norm, start) for norm in ('BN', 'GN', 'SN'))
        assert all(s > max(b, g) for b, g, s in zip(bn, gn, sn, strict=True))
    bn, gn, sn = (reached(records['video'], norm, images) for norm in ('BN', 'GN', 'SN'))
    assert abs(mean(bn) - mean(sn)) < 0.5
    assert max(gn) < min(bn + sn)
