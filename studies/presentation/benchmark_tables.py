"""Measurements as Markdown tables, in plain Python, so that a bare machine can print them."""

from collections.abc import Iterable, Sequence
from math import exp, log
from statistics import median
from typing import Any

from studies.benchmarks.baselines import BASELINE, CHAIN, FUSED

Records = Sequence[dict[str, Any]]


def geometric_mean(values: Iterable[float]) -> float:
    """The geometric mean of positive numbers."""
    values = list(values)
    return exp(sum(map(log, values)) / len(values))


def time_table(records: Records) -> str:
    """Milliseconds of every rival, a row per shape; the last columns are ratios of the fused SN."""
    names = list(records[0]['milliseconds'])
    rows = []
    for record in records:
        times = record['milliseconds']
        ratios = (times[FUSED] / times[BASELINE], times[CHAIN] / times[FUSED])
        rows.append(
            [
                _shape(record),
                *(f'{times[name]:.2f}' for name in names),
                *map('{:.2f}'.format, ratios),
            ]
        )
    return markdown(['shape', *names, 'fused / BN', 'plain / fused'], rows)


def memory_table(records: Records) -> str:
    """Peak MB of forward and backward, a row per shape."""
    rows = [
        [
            _shape(record),
            *(f'{record["bytes"][name] / 1e6:.1f}' for name in (BASELINE, FUSED)),
            f'{record["bytes"][FUSED] / record["bytes"][BASELINE]:.3f}',
        ]
        for record in records
    ]
    return markdown(['shape', BASELINE, FUSED, 'fused / BN'], rows)


def growth_table(records: Records) -> str:
    """Milliseconds and nanoseconds per element over the size."""
    rows = [
        [
            f'{record["elements"]:,}',
            *(f'{record["milliseconds"][name]:.3f}' for name in (BASELINE, FUSED)),
            f'{record["milliseconds"][FUSED] / record["elements"] * 1e6:.2f}',
        ]
        for record in records
    ]
    return markdown(['elements', f'{BASELINE} ms', f'{FUSED} ms', f'{FUSED} ns/element'], rows)


def summary_table(records: Records) -> str:
    """For each type, format and direction, how the fused SN compares over all shapes."""
    rows = []
    for key, group in group_by(records, ('dtype', 'format', 'what')).items():
        times = [record['milliseconds'] for record in group]
        to_baseline = [t[FUSED] / t[BASELINE] for t in times]
        to_chain = [t[CHAIN] / t[FUSED] for t in times]
        others = [name for name in times[0] if name not in (BASELINE, CHAIN, FUSED)]
        to_others = [f'{geometric_mean(t[FUSED] / t[name] for t in times):.2f}' for name in others]
        numbers = (geometric_mean(to_baseline), max(to_baseline), min(to_chain))
        rows.append([*key, *map('{:.2f}'.format, numbers), *to_others])
    header = ['type', 'format', 'direction', 'fused / BN', 'at most', 'plain / fused at least']
    return markdown([*header, *(f'fused / {name}' for name in others)], rows)


def correctness_table(records: Records) -> str:
    """The worst error of each quantity, a row per backend, type and format."""
    names = list(records[0]['errors'])
    rows = [
        [record['backend'], record['dtype'], record['format']]
        + [f'{record["errors"].get(name, float("nan")):.1e}' for name in names]
        + [f'{record["bound"]:.0e}']
        for record in records
    ]
    return markdown(['backend', 'type', 'format', *names, 'bound'], rows)


def bandwidth_table(records: Records) -> str:
    """The share of a copy's bandwidth that SN and BN reach, a row per measurement."""
    keys = ('dtype', 'format', 'what')
    rows = [
        [_shape(record), *(record[key] for key in keys)]
        + [f'{record["share_of_copy"][name]:.0%}' for name in (BASELINE, FUSED)]
        for record in records
    ]
    return markdown(['shape', *keys, BASELINE, FUSED], rows)


def step_table(data: dict[str, Any]) -> str:
    """Milliseconds of a training step by norm, and SN's ratio to each."""
    times = data['milliseconds']
    rows = [[name, f'{time:.0f}', f'{times["SN"] / time:.3f}'] for name, time in times.items()]
    return markdown(['norm', 'ms per step', 'SN / norm'], rows)


def busy_table(data: dict[str, Any]) -> str:
    """Milliseconds of a training step, alone and on busy cores: the median, the least, the most."""
    places = {'alone': 'alone', 'beside': f'beside {data["beside"]} single-threaded processes'}
    rows = []
    for place, title in places.items():
        times = data['milliseconds'][place]
        spread = (f'{median(t):.0f} ({min(t):.0f} to {max(t):.0f})' for t in times.values())
        ratio = median(times['sleep']) / median(times['spin'])
        rows.append([title, *spread, f'{ratio:.3f}'])
    return markdown(['ms per step', 'threads spin', 'threads sleep', 'sleep / spin'], rows)


def all_tables(data: dict[str, Any]) -> str:
    """Every table of a data file, with headings."""
    timed = [record for record in data['records'] if 'milliseconds' in record]
    parts = ['## Summary', summary_table(timed)]
    for key, group in group_by(timed, ('dtype', 'format', 'what')).items():
        parts += [f'### {", ".join(key)} (ms)', time_table(group)]
    weighed = [record for record in data['records'] if 'bytes' in record]
    for key, group in group_by(weighed, ('dtype', 'format')).items():
        parts += [
            f'### {", ".join(key)}, peak memory of forward+backward (MB)',
            memory_table(group),
        ]
    if data.get('growth'):
        parts += ['### Growth with the size', growth_table(data['growth'])]
    return '\n\n'.join(parts)


def group_by(records: Records, keys: Sequence[str]) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """The records by their values of ``keys``, in the order of the first of each."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault(tuple(record[key] for key in keys), []).append(record)
    return groups


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ['---'] * len(header), *rows]
    return '\n'.join(f'| {" | ".join(line)} |' for line in lines)


def _shape(record: dict[str, Any]) -> str:
    return '×'.join(map(str, record['shape']))
