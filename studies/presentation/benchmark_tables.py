"""The tables of the benchmarks, in plain Python: a bare machine can print them."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import exp, log, prod
from statistics import median
from typing import Any

from studies.benchmarks.baselines import BN, FUSED
from studies.benchmarks.timing import SMALL
from studies.presentation.markdown import group_by, table

Record = dict[str, Any]
Group = Sequence[Record]

_INPUT = ('dtype', 'format', 'what')
_INPUT_TITLES = ('type', 'format', 'direction')


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of positive numbers."""
    values = list(values)
    return exp(sum(map(log, values)) / len(values))


def spread(values: Sequence[float], digits: str) -> str:
    """Return the median, and the least and the most in brackets."""
    return f'{median(values):{digits}} ({min(values):{digits}} to {max(values):{digits}})'


def ratios(times: Sequence[float], others: Sequence[float]) -> list[float]:
    """Return the ratio of two times of each round."""
    return [time / other for time, other in zip(times, others, strict=True)]


def time_table(records: Group) -> str:
    """Return the milliseconds of every layer per shape, and the ratio of the fused SN to BN."""
    columns = {name: partial(_milliseconds, name) for name in records[0]['milliseconds']}
    columns['fused / BN'] = lambda group: spread(
        ratios(group[0]['milliseconds'][FUSED], group[0]['milliseconds'][BN]), '.2f'
    )
    return table(records, ['shape'], _shape, columns)


def memory_table(records: Group) -> str:
    """Return the peak MB of forward and backward per shape."""
    columns = {name: _value('bytes', name, '.1f', 1e-6) for name in (BN, FUSED)}
    columns['fused / BN'] = _ratio('bytes', FUSED, BN, '.3f')
    return table(records, ['shape'], _shape, columns)


def growth_table(records: Group) -> str:
    """Return milliseconds, and nanoseconds per element, over the size."""
    columns = {f'{name} ms': partial(_milliseconds, name) for name in (BN, FUSED)}
    columns[f'{FUSED} ns/element'] = lambda group: (
        f'{median(group[0]["milliseconds"][FUSED]) / group[0]["elements"] * 1e6:.2f}'
    )
    return table(records, ['elements'], lambda record: (f'{record["elements"]:,}',), columns)


def summary_table(records: Group) -> str:
    """Compare the fused SN with every layer over all shapes, per type, format and direction."""
    names = list(dict.fromkeys(name for record in records for name in record['milliseconds']))
    columns = {
        'fused / BN': partial(_over_shapes, BN),
        'worst shape': _worst_shape,
        **{
            f'fused / {name}': partial(_over_shapes, name)
            for name in names
            if name not in (BN, FUSED)
        },
    }
    return table(records, _INPUT_TITLES, partial(_cells, _INPUT), columns)


def correctness_table(records: Group) -> str:
    """Return the largest error of each quantity per backend, type and format."""
    keys = ('backend', 'dtype', 'format')
    columns = {name: _error(name) for name in records[0]['errors']}
    columns['bound'] = lambda group: f'{group[0]["bound"]:.0e}'
    return table(records, ['backend', 'type', 'format'], partial(_cells, keys), columns)


def bandwidth_table(records: Group) -> str:
    """Return the share of a copy's bandwidth that SN and BN reach, per measurement."""
    columns = {name: _value('share_of_copy', name, '.0%') for name in (BN, FUSED)}
    return table(
        records,
        ['shape', *_INPUT],
        lambda record: _shape(record) + _cells(_INPUT, record),
        columns,
    )


def step_table(data: Record) -> str:
    """Return milliseconds per step, SN's ratio to each norm, and the share of the norm layers."""
    times = data['milliseconds']
    columns = {
        'ms per step': lambda names: spread(times[names[0]], '.0f'),
        'SN / norm': lambda names: spread(ratios(times['SN'], times[names[0]]), '.3f'),
        'share of the norm layers': lambda names: f'{data["norm_share"][names[0]]:.1%}',
    }
    return table(times, ['norm'], lambda name: (name,), columns)


def import_table(data: Record) -> str:
    """Return the CPU seconds of processes that import the package or not: median, least, most."""

    def cell(name: str, rows: Sequence[tuple[str, dict[str, list[float]]]]) -> str:
        return spread(rows[0][1][name], '.2f')

    columns = {name: partial(cell, name) for name in ('alone', 'with sn_openmmlab')}
    rows = data['cpu_seconds'].items()
    return table(rows, ['CPU seconds'], lambda row: (row[0],), columns)


def host_table(data: Record) -> str:
    """Return the microseconds of BN and SN on the host, and SN over BN: median, least, most."""
    cells = []
    for what, times in data['microseconds'].items():
        first, second, *_ = times
        for name, rounds in times.items():
            over = [spread(ratios(rounds, times[other]), '.2f') for other in (first, second)]
            cells.append((what, name, spread(rounds, '.1f'), *over))
    titles = ['', '', 'µs', f'over {first}', f'over {second}']
    return table(cells, titles, lambda cell: cell, {})


def busy_table(data: Record) -> str:
    """Return the milliseconds of a training step, alone and on busy cores: median, least, most."""
    titles = {'alone': 'alone', 'beside': f'beside {data["beside"]} single-threaded processes'}

    def cell(threads: str, places: Sequence[str]) -> str:
        return spread(data['milliseconds'][places[0]][threads], '.0f')

    def ratio(places: Sequence[str]) -> str:
        times = data['milliseconds'][places[0]]
        return f'{median(times["sleep"]) / median(times["spin"]):.3f}'

    columns: dict[str, Callable[[Sequence[str]], str]] = {
        'threads spin': partial(cell, 'spin'),
        'threads sleep': partial(cell, 'sleep'),
        'sleep / spin': ratio,
    }
    return table(titles, ['ms per step'], lambda place: (titles[place],), columns)


def sparse_table(data: Record) -> str:
    """Return CPU milliseconds, their ratio to BN (median, least, most) and peak MB of inference."""
    return _measured_table(data, 'norm', 'time / BN')


def guard_table(data: Record) -> str:
    """Return the same of training steps with NonFiniteGuardHook, and the ratio to those without."""
    return _measured_table(data, 'hook', 'time / without')


def _measured_table(data: Record, what: str, over: str) -> str:
    def ratio(rows: Sequence[tuple[str, str, Record]]) -> str:
        return spread(rows[0][2]['ratios'], '.2f')

    rows = [
        (kind, name, record)
        for kind, records in data['models'].items()
        for name, record in records.items()
    ]
    columns: dict[str, Callable[[Sequence[tuple[str, str, Record]]], str]] = {
        'CPU ms': lambda rows: f'{rows[0][2]["milliseconds"]:.0f}',
        over: ratio,
        'peak MB': lambda rows: f'{rows[0][2]["bytes"] * 1e-6:.1f}',
    }
    return table(rows, ['model', what], lambda row: row[:2], columns)


def all_tables(data: Record) -> str:
    """Return every table of a data file, with headings."""
    timed = [record for record in data['records'] if 'milliseconds' in record]
    parts = []
    for small, group in group_by(timed, _is_small).items():
        size = 'fewer than 10⁵ elements, one thread' if small else 'maps of a detector'
        parts += [f'## {size[0].upper()}{size[1:]}', summary_table(group)]
        for cells, measured in group_by(group, partial(_cells, _INPUT)).items():
            parts += [f'### {", ".join(cells)}, {size} (ms)', time_table(measured)]
    parts.append('## Memory')
    measured = [record for record in data['records'] if 'bytes' in record]
    for cells, group in group_by(measured, partial(_cells, ('dtype', 'format'))).items():
        title = f'### {", ".join(cells)}, peak memory of forward+backward (MB)'
        parts += [title, memory_table(group)]
    if data.get('growth'):
        parts += ['## Growth with the size', growth_table(data['growth'])]
    return '\n\n'.join(parts)


def _is_small(record: Record) -> bool:
    return prod(record['shape']) < SMALL


def _cells(keys: Sequence[str], record: Record) -> tuple[str, ...]:
    return tuple(record[key] for key in keys)


def _shape(record: Record) -> tuple[str]:
    return ('×'.join(map(str, record['shape'])),)


def _value(quantity: str, name: str, form: str, scale: float = 1) -> Callable[[Group], str]:
    return lambda group: f'{group[0][quantity][name] * scale:{form}}'


def _ratio(quantity: str, name: str, other: str, form: str) -> Callable[[Group], str]:
    return lambda group: f'{group[0][quantity][name] / group[0][quantity][other]:{form}}'


def _milliseconds(name: str, group: Group) -> str:
    # Significant digits: the times go from microseconds to a second.
    return f'{median(group[0]["milliseconds"][name]):#.3g}'.rstrip('.')


def _over_shapes(name: str, group: Group) -> str:
    """Return the ratio of the fused SN to a layer: the geometric mean over the shapes per round."""
    times = [record['milliseconds'] for record in group]
    if name not in times[0]:
        return '-'
    per_shape = [ratios(own[FUSED], own[name]) for own in times]
    return spread([geometric_mean(found) for found in zip(*per_shape, strict=True)], '.2f')


def _worst_shape(group: Group) -> str:
    times = [record['milliseconds'] for record in group]
    return f'{max(median(ratios(own[FUSED], own[BN])) for own in times):.2f}'


def _error(name: str) -> Callable[[Group], str]:
    return lambda group: f'{group[0]["errors"].get(name, float("nan")):.1e}'
