"""The table of the paper's claims agrees with the committed records of all the studies."""

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev

import pytest

from studies.experiments.records import Record, read_records

TOP1, AP = 'accuracy/top1', 'coco/bbox_mAP'


@pytest.fixture(scope='module')
def page(repo: Path) -> str:
    return (repo / 'docs/results/claims.md').read_text()


@pytest.fixture(scope='module')
def rows(page: str) -> dict[str, list[str]]:
    """Return the cells of each claim: the paper's number, ours, and whether they agree."""
    lines = re.findall(r'^\| \*\*(.*?)\*\*.*?\| (.*) \|$', page, re.MULTILINE)
    return {claim: cells.split(' | ') for claim, cells in lines}


@pytest.fixture(scope='module')
def records(repo: Path) -> list[Record]:
    return read_records(repo / 'docs/claims/runs.json')[0]


@pytest.fixture(scope='module')
def seeds(records: list[Record]) -> Callable[[str, int], list[float]]:
    """A function (norm, images per GPU) -> the accuracy of each seed."""

    def find(norm: str, per_gpu: int) -> list[float]:
        found = [r.metrics[TOP1][-1] for r in records if (r.variant, r.batch) == (norm, per_gpu)]
        assert len(found) == 3
        return found

    return find


@pytest.fixture(scope='module')
def said(seeds: Callable) -> Callable[..., str]:
    """A function (norm, images per GPU) -> the mean accuracy as the page writes it."""
    return lambda norm, per_gpu: f'{mean(seeds(norm, per_gpu)):.1f}'


@pytest.fixture(scope='module')
def ratio(records: list[Record]) -> Callable[..., float]:
    """A function (images per GPU, scope, kind, part) -> the mean ratio of SN."""

    def find(per_gpu: int, scope: str, kind: str = 'mean', part: str = 'all') -> float:
        sn = [r for r in records if (r.variant, r.batch) == ('sn', per_gpu)]
        return mean(record.ratios[part][kind][scope] for record in sn)

    return find


def is_above(first: list[float], second: list[float]) -> bool:
    """Return whether each seed of the first is above each of the second."""
    return min(first) > max(second)


def test_large_batches(rows: dict, seeds: Callable, said: Callable) -> None:
    paper, ours, agrees = rows['SN is better than BN in large batches']
    assert paper == '(8,32): SN 76.9, BN 76.4'
    assert ours == f'32 images: SN {said("sn", 32)}, BN {said("bn", 32)}'
    sn, bn = seeds('sn', 32), seeds('bn', 32)
    assert abs(mean(sn) - mean(bn)) < max(stdev(sn), stdev(bn))
    assert agrees.startswith('not shown')

    _, ours, agrees = rows['SN is better than GN in large batches']
    assert ours == f'SN {said("sn", 32)} over 32 images, GN {said("gn", 2)}'
    ahead = mean(sn) - mean(seeds('gn', 2))
    assert is_above(sn, seeds('gn', 2)) and agrees == f'yes, by {ahead:.1f} (the paper: 1.0)'

    _, ours, agrees = rows['SN is better than IN or LN alone']
    assert ours == f'SN {said("sn", 32)} over 32 images, IN {said("in", 2)}, LN {said("ln", 2)}'
    assert is_above(sn, seeds('in', 2) + seeds('ln', 2)) and agrees == 'yes'


def test_small_batches(rows: dict, seeds: Callable, said: Callable) -> None:
    _, ours, agrees = rows['BN loses accuracy in small batches']
    loss = mean(seeds('bn', 32)) - mean(seeds('bn', 2))
    assert agrees == f'yes, but by {loss:.1f} at 2 images (the paper: 11.1)'
    fall = f'{said("bn", 32)} to {said("bn", 2)}'
    assert ours == f'32 to 2 images: {fall}; {said("bn", 1)} at 1'

    _, ours, _ = rows['SN loses much less than BN']
    assert ours == (
        f'32 to 2 images: SN {said("sn", 32)} to {said("sn", 2)}, BN {fall}; '
        f'at 1: SN {said("sn", 1)} ({said("sn-in-ln", 2)} without `bn`), BN {said("bn", 1)}'
    )
    assert is_above(seeds('sn', 1), seeds('bn', 1))
    for per_gpu in (2, 4):
        losses = [mean(seeds(n, 32)) - mean(seeds(n, per_gpu)) for n in ('sn', 'bn')]
        assert losses[0] > losses[1] - 0.5

    _, ours, _ = rows['GN and SN are far ahead of BN in small batches']
    gn, sn, bn, sn_one, bn_one = map(said, ('gn', 'sn', 'bn', 'sn', 'bn'), (2, 2, 2, 1, 1))
    assert ours == (
        f'2 images: GN {gn}, SN {sn}, BN {bn}; 1 image: GN {gn}, SN {sn_one}, BN {bn_one}'
    )
    assert is_above(seeds('bn', 2), seeds('gn', 2))
    assert is_above(seeds('gn', 2) + seeds('sn', 1), seeds('bn', 1))

    _, ours, agrees = rows['SN keeps up with GN in small batches']
    assert ours == f'2 images: SN {sn}, GN {gn}; 1 image, without `bn`: SN {said("sn-in-ln", 2)}'
    ahead = [mean(seeds(name, 2)) - mean(seeds('gn', 2)) for name in ('sn', 'sn-in-ln')]
    assert agrees == f'yes; SN is ahead by {ahead[0]:.1f} and {ahead[1]:.1f}'
    assert is_above(seeds('sn', 2) + seeds('sn-in-ln', 2), seeds('gn', 2))


def test_batch_renormalization(rows: dict, seeds: Callable, said: Callable) -> None:
    paper, ours, _ = rows['SN is better than BRN']
    assert paper == '(8,4): SN 75.9, BRN 73.7, BN 72.7'
    assert ours == f'4 images: SN {said("sn", 4)}, BRN {said("brn", 4)}, BN {said("bn", 4)}'
    assert abs(mean(seeds('sn', 4)) - mean(seeds('brn', 4))) < 0.5
    for per_gpu in (1, 32):
        assert is_above(seeds('sn', per_gpu), seeds('brn', per_gpu))


def test_ratios(rows: dict, ratio: Callable) -> None:
    _, ours, _ = rows['SN turns from `bn` to `ln` in small batches']
    bn, ln = ([f'{ratio(n, scope):.2f}' for n in (32, 4, 2)] for scope in ('bn', 'ln'))
    assert ours == f'w of `bn` {bn[0]} at 32 images, {bn[1]} at 4, {bn[2]} at 2; of `ln` ' + (
        ', '.join(ln)
    )
    for kind in ('mean', 'var'):
        assert all(a > b for a, b in pairwise(ratio(n, 'bn', kind) for n in (32, 4, 2)))

    _, ours, _ = rows['The deepest layers prefer LN and IN to BN']
    large, small = (
        ', '.join(f'{ratio(n, "bn", kind, "layer3"):.3f}' for kind in ('mean', 'var'))
        for n in (32, 2)
    )
    assert ours == f'`layer3`, w and w′ of `bn`: {large} at 32 images; {small} at 2'


def test_the_other_studies(repo: Path, rows: dict) -> None:
    def ap(
        study: str, variant: str, keep: Callable[[Record], bool] = lambda _: True, metric: str = AP
    ) -> str:
        found, _ = read_records(repo / f'docs/{study}/runs.json')
        values = [r.metrics[metric][-1] for r in found if r.variant == variant and keep(r)]
        return f'{100 * mean(values):.1f}'

    small = [ap('small_batch', norm, lambda r: r.batch == 2) for norm in ('sn', 'gn', 'bn')]
    _, ours, _ = rows['From scratch, SN detectors are ahead of GN and far ahead of BN']
    assert '2 images: SN {}, GN {}, BN {};'.format(*small) in ours
    longer = [
        ap('longer_detection', norm, metric=f'moving 0.1/{AP}') for norm in ('sn', 'gn', 'bn')
    ]
    assert '(longer_detection.md): SN {}, GN {}, BN {};'.format(*longer) in ours


def test_inference(repo: Path, rows: dict) -> None:
    def accuracy(study: str, variant: str, per_gpu: int, statistics: str, point: int) -> float:
        found, _ = read_records(repo / f'docs/{study}/runs.json')
        key = f'{statistics}/{TOP1}'
        runs = [r for r in found if (r.variant, r.batch) == (variant, per_gpu)]
        return mean(record.metrics[key][point] for record in runs)

    fine_tuned = {
        (variant, n): accuracy('sparse', variant, n, 'batch average', -1)
        for variant in ('sparse', 'dense')
        for n in (32, 2)
    }
    large, small = ((fine_tuned['sparse', n], fine_tuned['dense', n]) for n in (32, 2))
    _, ours, agrees = rows['Sparse SN is comparable to SN']
    assert ours.endswith(
        f'sparse {large[0]:.1f}, dense {large[1]:.1f}; 2 images: {small[0]:.1f}, {small[1]:.1f}'
    )
    losses = [dense - sparse for sparse, dense in (large, small)]
    assert agrees == (
        f'no: sparse SN is {losses[0]:.1f} points below at 32 images, {losses[1]:.1f} at 2'
    )
    half, end = (
        [accuracy('batch_average', 'sn', 32, s, point) for s in ('batch average', 'moving 0.1')]
        for point in (2, -1)
    )
    _, ours, _ = rows['With batch average the accuracy rises faster']
    assert ours.endswith(
        f'{half[0]:.1f} with it, {half[1]:.1f} with moving averages; '
        f'at the end {end[0]:.1f}, {end[1]:.1f}'
    )


def test_the_text(page: str, seeds: Callable, said: Callable, records: list[Record]) -> None:
    prose = ' '.join(page.split())
    assert f'equal**, at {said("sn", 32)} both.' in prose and said('bn', 32) == said('sn', 32)
    assert is_above(seeds('sn-in-ln', 2), seeds('in', 2) + seeds('ln', 2))
    assert is_above(seeds('sn-in-ln', 2), seeds('sn', 1))
    settings = {r.variant for r in records if r.batch == 2 and r.variant.startswith('sn')}
    means = [mean(seeds(variant, 2)) for variant in settings - {'sn-in-ln'}]
    assert f'all are within {max(means) - min(means):.1f} points, from {min(means):.1f}' in prose
    layer3 = [
        record.ratios['layer3']['var']['ln']
        for record in records
        if (record.variant, record.batch) == ('sn', 2)
    ]
    assert f'almost wholly from `ln` ({mean(layer3):.3f})' in prose


def test_the_overviews(repo: Path, said: Callable) -> None:
    overview = (repo / 'docs/results/index.md').read_text()
    assert f'SN {said("sn", 32)}, BN {said("bn", 32)}, GN {said("gn", 2)}; at 2' in overview
    small = f'at 2: SN {said("sn", 2)}, BN {said("bn", 2)}; at 1: SN {said("sn", 1)}, BN '
    for file in ('docs/results/index.md', 'docs/what_works.md'):
        assert small + said('bn', 1) in (repo / file).read_text()
