"""The tables of the benchmarks, in plain Python: a bare machine can print them."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import exp, log
from statistics import median
from typing import Any

from studies.benchmarks.baselines import BN, FUSED, PLAIN
from studies.presentation.markdown import group_by, table

Record = dict[str, Any]
Group = Sequence[Record]

_INPUT = ('dtype', 'format', 'what')
_INPUT_TITLES = ('type', 'format', 'direction')


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of positive numbers."""
    values = list(values)
    return exp(sum(map(log, values)) / len(values))


def time_table(records: Group) -> str:
    """Return the milliseconds of every layer per shape, and two ratios of the fused SN."""
    columns = {name: _value('milliseconds', name, '.2f') for name in records[0]['milliseconds']}
    columns['fused / BN'] = _ratio('milliseconds', FUSED, BN, '.2f')
    columns['plain / fused'] = _ratio('milliseconds', PLAIN, FUSED, '.2f')
    return table(records, ['shape'], _shape, columns)


def memory_table(records: Group) -> str:
    """Return the peak MB of forward and backward per shape."""
    columns = {name: _value('bytes', name, '.1f', 1e-6) for name in (BN, FUSED)}
    columns['fused / BN'] = _ratio('bytes', FUSED, BN, '.3f')
    return table(records, ['shape'], _shape, columns)


def growth_table(records: Group) -> str:
    """Return milliseconds, and nanoseconds per element, over the size."""
    columns = {f'{name} ms': _value('milliseconds', name, '.3f') for name in (BN, FUSED)}
    columns[f'{FUSED} ns/element'] = lambda group: (
        f'{group[0]["milliseconds"][FUSED] / group[0]["elements"] * 1e6:.2f}'
    )
    return table(records, ['elements'], lambda record: (f'{record["elements"]:,}',), columns)


def summary_table(records: Group) -> str:
    """Compare the fused SN with every layer over all shapes, per type, format and direction."""
    others = [name for name in records[0]['milliseconds'] if name not in (BN, PLAIN, FUSED)]
    columns = {
        'fused / BN': _over_shapes(geometric_mean, FUSED, BN),
        'at most': _over_shapes(max, FUSED, BN),
        'plain / fused at least': _over_shapes(min, PLAIN, FUSED),
        **{f'fused / {name}': _over_shapes(geometric_mean, FUSED, name) for name in others},
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
    """Return the milliseconds of a training step per norm, and SN's ratio to each."""
    times = data['milliseconds']
    columns = {
        'ms per step': lambda names: f'{times[names[0]]:.0f}',
        'SN / norm': lambda names: f'{times["SN"] / times[names[0]]:.3f}',
    }
    return table(times, ['norm'], lambda name: (name,), columns)


def import_table(data: Record) -> str:
    """Return the CPU seconds of processes that import the package or not: median, least, most."""

    def spread(name: str, rows: Sequence[tuple[str, dict[str, list[float]]]]) -> str:
        times = rows[0][1][name]
        return f'{median(times):.2f} ({min(times):.2f} to {max(times):.2f})'

    columns = {name: partial(spread, name) for name in ('alone', 'with sn_openmmlab')}
    rows = data['cpu_seconds'].items()
    return table(rows, ['CPU seconds'], lambda row: (row[0],), columns)


def host_table(data: Record) -> str:
    """Return the microseconds of BN and SN on the host, and SN over BN: median, least, most.

    Each ratio is of two times of one round.
    """

    def spread(values: Sequence[float], digits: str) -> str:
        return f'{median(values):{digits}} ({min(values):{digits}} to {max(values):{digits}})'

    def over(rounds: Sequence[float], others: Sequence[float]) -> str:
        return spread([a / b for a, b in zip(rounds, others, strict=True)], '.2f')

    cells = []
    for what, times in data['microseconds'].items():
        first, second, *_ = times
        for name, rounds in times.items():
            ratios = [over(rounds, times[other]) for other in (first, second)]
            cells.append((what, name, spread(rounds, '.1f'), *ratios))
    titles = ['', '', 'µs', f'over {first}', f'over {second}']
    return table(cells, titles, lambda cell: cell, {})


def busy_table(data: Record) -> str:
    """Return the milliseconds of a training step, alone and on busy cores: median, least, most."""
    titles = {'alone': 'alone', 'beside': f'beside {data["beside"]} single-threaded processes'}

    def spread(threads: str, places: Sequence[str]) -> str:
        times = data['milliseconds'][places[0]][threads]
        return f'{median(times):.0f} ({min(times):.0f} to {max(times):.0f})'

    def ratio(places: Sequence[str]) -> str:
        times = data['milliseconds'][places[0]]
        return f'{median(times["sleep"]) / median(times["spin"]):.3f}'

    columns: dict[str, Callable[[Sequence[str]], str]] = {
        'threads spin': partial(spread, 'spin'),
        'threads sleep': partial(spread, 'sleep'),
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
        found = rows[0][2]['ratios']
        return f'{median(found):.2f} ({min(found):.2f} to {max(found):.2f})'

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
    parts = ['## Summary', summary_table(timed)]
    for cells, group in group_by(timed, partial(_cells, _INPUT)).items():
        parts += [f'### {", ".join(cells)} (ms)', time_table(group)]
    measured = [record for record in data['records'] if 'bytes' in record]
    for cells, group in group_by(measured, partial(_cells, ('dtype', 'format'))).items():
        title = f'### {", ".join(cells)}, peak memory of forward+backward (MB)'
        parts += [title, memory_table(group)]
    if data.get('growth'):
        parts += ['### Growth with the size', growth_table(data['growth'])]
    return '\n\n'.join(parts)


def _cells(keys: Sequence[str], record: Record) -> tuple[str, ...]:
    return tuple(record[key] for key in keys)


def _shape(record: Record) -> tuple[str]:
    return ('×'.join(map(str, record['shape'])),)


def _value(quantity: str, name: str, form: str, scale: float = 1) -> Callable[[Group], str]:
    return lambda group: f'{group[0][quantity][name] * scale:{form}}'


def _ratio(quantity: str, name: str, other: str, form: str) -> Callable[[Group], str]:
    return lambda group: f'{group[0][quantity][name] / group[0][quantity][other]:{form}}'


def _over_shapes(
    combine: Callable[[Iterable[float]], float], name: str, other: str
) -> Callable[[Group], str]:
    def cell(group: Group) -> str:
        times = [record['milliseconds'] for record in group]
        return f'{combine(t[name] / t[other] for t in times):.2f}'

    return cell


def _error(name: str) -> Callable[[Group], str]:
    return lambda group: f'{group[0]["errors"].get(name, float("nan")):.1e}'
