"""The tables and the figure of a long training that was watched from outside."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from sn_openmmlab.analysis.colors import LINES
from studies.presentation.markdown import table

# The shares of the time in which worker processes start, caches fill and so on, and in which all
# of them end.
WARM_UP, _END = 1 / 8, 1 / 64
_QUARTERS, _BLOCKS = 4, 16
# Below, a quarter would have too few samples to speak of.
FEWEST = 64
_MB = 1e6

Samples = Mapping[str, np.ndarray]


class Slope(NamedTuple):
    """A change per hour and its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f'{self.value:+.1f} ± {self.error:.1f}'


def read_samples(data: Mapping[str, Any]) -> Samples:
    """Return the samples of a record as an array per column."""
    return dict(zip(data['columns'], np.array(data['samples'], float).T, strict=True))


def after_warm_up(samples: Samples) -> Samples:
    """Return the samples after the first eighth of the time and before its last 64th."""
    share = samples['seconds'] / samples['seconds'][-1]
    kept = (share >= WARM_UP) & (share <= 1 - _END)
    return {name: values[kept] for name, values in samples.items()}


def slope(samples: Samples, column: str) -> Slope:
    """Return the change per hour of a column: a line through the means of sixteen blocks.

    An evaluation moves neighbouring samples together, so that their number says little about the
    error. The means of blocks, each of several epochs, are nearly independent.
    """
    hours = [values.mean() / 3600 for values in np.array_split(samples['seconds'], _BLOCKS)]
    means = [values.mean() for values in np.array_split(samples[column], _BLOCKS)]
    (value, _), covariance = np.polyfit(hours, means, 1, cov=True)
    return Slope(float(value), float(covariance[0, 0] ** 0.5))


def soak_page(data: Mapping[str, Any], machine: Mapping[str, Any]) -> str:
    """Return every table as a Markdown page."""
    samples = read_samples(data)
    steady = after_warm_up(samples)
    hours = samples['seconds'][-1] / 3600
    ended = {None: 'still running', 0: 'ended by itself, exit code 0'}
    state = ended.get(data['exit_code'], f'failed with exit code {data["exit_code"]}')
    load = samples['load']
    aps = data['box_aps']
    head = (
        f'{machine["device"]}, threads: {machine["threads"]}, torch {machine["torch"]}; '
        f'{data["config"]}; {len(load)} samples. Load of the machine, which others used too: '
        f'{load.mean():.1f} ({load.min():.1f} to {load.max():.1f}).'
    )
    course = (
        f'{hours:.2f} hours ({state}), {samples["iteration"][-1]:.0f} iterations, {len(aps)} '
        f'evaluations and checkpoints, the last with a box AP of '
        f'{100 * aps[-1] if aps else float("nan"):.1f} %.'
    )
    minutes = WARM_UP * samples['seconds'][-1] / 60
    return '\n\n'.join(
        [
            '# A long training',
            head,
            course,
            f'## After a warm-up of {minutes:.0f} minutes',
            quarter_table(steady),
            '## Change per hour after the warm-up, ± standard error',
            slope_table(steady),
        ]
    )


def quarter_table(samples: Samples) -> str:
    """Return what was used in each quarter of the samples."""
    parts = [dict(zip(samples, rows, strict=True)) for rows in _split(samples, _QUARTERS)]
    columns = {
        'memory of all processes, MB: mean (max)': lambda group: _memory(group[0][1]['pss']),
        'of the main one': lambda group: _memory(group[0][1]['rss']),
        'open files': lambda group: _range(group[0][1]['files']),
        'threads': lambda group: _range(group[0][1]['threads']),
        'CPU seconds / iteration': lambda group: f'{_per_iteration(group[0][1], "cpu"):.3f}',
        'seconds / iteration': lambda group: f'{_per_iteration(group[0][1], "seconds"):.3f}',
    }
    return table(enumerate(parts, 1), ['quarter'], lambda part: (str(part[0]),), columns)


def slope_table(samples: Samples) -> str:
    """Return the change per hour of what must not grow."""
    rows = {
        'memory of all processes (MB)': Slope(*(part / _MB for part in slope(samples, 'pss'))),
        'memory of the main process (MB)': Slope(*(part / _MB for part in slope(samples, 'rss'))),
        'open files': slope(samples, 'files'),
        'threads': slope(samples, 'threads'),
    }
    return table(
        rows.items(), ['of'], lambda row: row[:1], {'per hour': lambda group: str(group[0][1])}
    )


def draw_soak(data: Mapping[str, Any], file: Path) -> None:
    """Draw memory, open files and threads, and time per iteration over the minutes."""
    samples = read_samples(data)
    minutes = samples['seconds'] / 60
    figure = Figure(figsize=(8, 8), layout='constrained')
    memory, counts, times = figure.subplots(3, 1, sharex=True)
    for name, label, color in (('pss', 'all processes', LINES[0]), ('rss', 'main one', LINES[1])):
        memory.plot(minutes, samples[name] / _MB, color=color, label=label)
    memory.set_ylabel('memory (MB)')
    for name, label, color in (('files', 'open files', LINES[0]), ('threads', 'threads', LINES[1])):
        counts.plot(minutes, samples[name], color=color, label=label)
    blocks = [dict(zip(samples, rows, strict=True)) for rows in _split(samples, _BLOCKS)]
    middles = [block['seconds'].mean() / 60 for block in blocks]
    for name, label, color in (('cpu', 'CPU', LINES[0]), ('seconds', 'wall-clock', LINES[1])):
        values = [_per_iteration(block, name) for block in blocks]
        times.plot(middles, values, color=color, label=label)
    times.set(xlabel='minutes', ylabel='seconds per iteration')
    for axes in (memory, counts, times):
        axes.axvspan(0, WARM_UP * minutes[-1], color='grey', alpha=0.15)
        axes.set_ylim(0, None)
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(file, dpi=100)


def _split(samples: Samples, parts: int) -> list[Sequence[np.ndarray]]:
    split = [np.array_split(values, parts) for values in samples.values()]
    return list(zip(*split, strict=True))


def _memory(values: np.ndarray) -> str:
    return f'{values.mean() / _MB:.0f} ({values.max() / _MB:.0f})'


def _range(values: np.ndarray) -> str:
    return f'{values.min():.0f} to {values.max():.0f}'


def _per_iteration(part: Samples, column: str) -> float:
    """Return the growth of a column per iteration; NaN where none was logged."""
    iterations = part['iteration'][-1] - part['iteration'][0]
    growth = part[column][-1] - part[column][0]
    return growth / iterations if iterations else float('nan')
