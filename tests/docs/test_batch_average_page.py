"""The prose on batch average agrees with the committed records."""

from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

import pytest

from studies.experiments.batch_average import CIFAR, DETECTOR
from studies.experiments.records import Record, read_records

FAST, SLOW, BATCH = 'moving 0.1', 'moving 0.003', 'batch average'
STATISTICS = (FAST, SLOW, BATCH)


@pytest.fixture(scope='module')
def prose(repo: Path) -> str:
    """Return the page on batch average with its lines joined."""
    return ' '.join((repo / 'docs/results/batch_average.md').read_text().split())


@pytest.fixture(scope='module')
def records(repo: Path) -> list[Record]:
    return read_records(repo / 'docs/batch_average/runs.json')[0]


@pytest.fixture(scope='module')
def courses(records: list[Record]) -> Callable[..., list[dict[str, list[float]]]]:
    """A function (task, norm) -> the values by statistics, in percent, of each seed."""

    def find(task: object, norm: str) -> list[dict[str, list[float]]]:
        name = f'{task.name}-{norm}'
        return [task.course.values(record) for record in records if record.variant == name]

    return find


def gaps(values: dict[str, list[float]], pairs: list[tuple[str, str]]) -> Iterator[list[float]]:
    """Yield how far the statistics of each pair are apart, by point."""
    for one, other in pairs:
        yield [abs(a - b) for a, b in zip(values[one], values[other], strict=True)]


def test_sn_hardly_depends_on_the_statistics(prose: str, courses: Callable) -> None:
    (values,) = courses(DETECTOR, 'sn')
    found = list(gaps(values, list(combinations(STATISTICS, 2))))
    largest, last = max(map(max, found)), max(gap[-1] for gap in found)
    assert f'differ by more than {largest:.1f} points of AP at any point' in prose
    assert f'and at the end by {last:.1f}.' in prose
    fast, slow = (
        [gap for seed in courses(CIFAR, 'sn') for (gap,) in [list(gaps(seed, [(name, BATCH)]))]]
        for name in (FAST, SLOW)
    )
    assert f'never more than {max(map(max, fast)):.1f} points away' in prose
    *_, second, first = sorted(value for gap in slow for value in gap)
    quarter = CIFAR.course.points.index(1 / 4)
    assert first == max(gap[quarter] for gap in slow)
    assert f'`{SLOW}` once is by {first:.1f}, after 1/4, and otherwise by {second:.1f} at' in prose


def test_bn_on_cifar(prose: str, courses: Callable) -> None:
    found = list(cifar_gaps(courses, 'bn'))
    assert f'average by up to {max(map(max, found)):.1f} points, in either direction.' in prose
    assert f'At the end the difference is at most {max(gap[-1] for gap in found):.1f}.' in prose
    seeds = courses(CIFAR, 'bn')
    ahead = [
        [batch - other for batch, other in zip(seed[BATCH], seed[name], strict=True)]
        for seed in seeds
        for name in (FAST, SLOW)
    ]
    assert min(map(min, ahead)) < 0 < max(map(max, ahead))
    late = [differences[CIFAR.course.points.index(3 / 4)] for differences in ahead]
    assert f'in each seed, by {min(late):.1f} to {max(late):.1f} points.' in prose


def test_pooled_variance(prose: str, courses: Callable) -> None:
    seeds = [seed for norm in ('sn', 'bn') for seed in courses(CIFAR, norm)]
    pairs = [(f'{BATCH}, pooled', BATCH)]
    largest = max(max(gap) for seed in seeds for gap in gaps(seed, pairs))
    assert f'differs from batch average by up to {largest:.1f} points' in prose
    changes = [
        pooled - plain
        for seed in seeds
        for pooled, plain in zip(seed[pairs[0][0]], seed[BATCH], strict=True)
    ]
    assert sum(changes) < 0


def cifar_gaps(courses: Callable, norm: str) -> Iterator[list[float]]:
    for values in courses(CIFAR, norm):
        yield from gaps(values, [(FAST, BATCH), (SLOW, BATCH)])


def test_bn_in_the_detector(prose: str, courses: Callable) -> None:
    (values,) = courses(DETECTOR, 'bn')
    assert DETECTOR.course.points[1:] == (1 / 4, 1 / 2, 3 / 4, 1)
    quarter, _, late, last = ({k: v[i] for k, v in values.items()} for i in range(1, 5))
    assert (
        f'batch average has an AP of {late[BATCH]:.1f}, `{FAST}` {late[FAST]:.1f} and `{SLOW}` '
        f'{late[SLOW]:.1f}.'
    ) in prose
    assert (
        f'`{FAST}` is ahead: {last[FAST]:.1f}, batch average {last[BATCH]:.1f} and `{SLOW}` '
        f'{last[SLOW]:.1f}.'
    ) in prose
    assert quarter[SLOW] == 0
    assert f'have an AP of {quarter[FAST]:.1f} and {quarter[BATCH]:.1f}.' in prose
    assert all(slow < fast for slow, fast in zip(values[SLOW], values[FAST], strict=True))


def test_shares_of_the_start_and_the_choice(prose: str, courses: Callable) -> None:
    shares = [f'{100 * 0.997**steps:.0f} % after {steps}' for steps in (100, 400, 800)]
    assert f'{shares[0]} steps, {shares[1]} and {shares[2]}.' in prose
    (values,) = courses(DETECTOR, 'sn')
    ahead = max(slow - fast for slow, fast in zip(values[SLOW], values[FAST], strict=True))
    assert f'`{SLOW}` was ahead by more than {ahead:.1f} points at no point.' in prose
