"""The figures of the studies: costs over sizes, curves with their spread, and learned ratios."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sn_openmmlab.analysis.bar_figures import draw_bars
from sn_openmmlab.analysis.colors import LINE_STYLES
from sn_openmmlab.analysis.ratio_style import TITLES
from studies.benchmarks.baselines import BN, FUSED
from studies.experiments.records import Record
from studies.presentation.experiment_tables import ACCURACY, AP

_DPI = 110


def draw_growth(records: Sequence[dict[str, Any]], title: str, file: Path) -> None:
    """Draw milliseconds over elements, both on logarithmic axes.

    Args:
        records: the results of `measure_growth`.
        title: what was measured, and on what.
        file: the picture to write.
    """
    figure, axes = _one_plot()
    elements = [record['elements'] for record in records]
    for name in (BN, FUSED):
        times = [median(record['milliseconds'][name]) for record in records]
        axes.plot(elements, times, marker='o', label=name)
    largest = records[-1]
    slope = median(largest['milliseconds'][FUSED]) / largest['elements']
    axes.plot(elements, [slope * n for n in elements], ':', color='grey', label='proportional')
    axes.set(xscale='log', yscale='log', xlabel='elements of the input', title=title)
    axes.set_ylabel('forward + backward (ms)')
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=_DPI)


def draw_ap(groups: Mapping[str, Sequence[Record]], title: str, file: Path) -> None:
    """Draw box AP over epochs: the mean over the seeds, with a band of one standard deviation.

    Args:
        groups: the records of each line, of at least two seeds, by its label.
        title: of the figure.
        file: the picture to write.
    """
    aps = {
        label: [[100 * ap for ap in record.metrics[AP]] for record in records]
        for label, records in groups.items()
    }
    _draw_curves(aps, title, 'validation box AP (%)', file, bottom=0)


def draw_accuracy(groups: Mapping[str, Sequence[Record]], title: str, file: Path) -> None:
    """Draw top-1 accuracy over epochs in the same way, from its lowest value."""
    accuracies = {
        label: [record.metrics[ACCURACY] for record in records] for label, records in groups.items()
    }
    _draw_curves(accuracies, title, 'top-1 accuracy (%)', file)


def draw_final_ap(groups: Mapping[str, Sequence[Record]], file: Path) -> None:
    """Draw the last box AP of each seed as a point and their mean as a line, a row per group.

    Args:
        groups: the records by the title of their row, the first on top; backquotes are left out.
        file: the picture to write.
    """
    last = {title: [100 * r.metrics[AP][-1] for r in group] for title, group in groups.items()}
    draw_points(last, 'validation box AP (%)', file)


def draw_points(values: Mapping[str, Sequence[float]], label: str, file: Path) -> None:
    """Draw each value as a point and their mean as a line, a row per group.

    Args:
        values: by the title of their row, the first on top; backquotes are left out.
        label: of the values.
        file: the picture to write.
    """
    figure, axes = _one_plot(height=0.8 + 0.4 * len(values))
    for row, points in enumerate(values.values()):
        axes.scatter(points, [row] * len(points), s=18, zorder=3)
        axes.vlines(np.mean(points), row - 0.3, row + 0.3, color='black', linewidth=2)
    axes.set_yticks(range(len(values)), map(_plain, values))
    # Points at the edge of the data would be cut.
    axes.set(xlabel=label, xlim=(0, 1.05 * max(map(max, values.values()))))
    axes.invert_yaxis()
    axes.grid(axis='x', alpha=0.3)
    figure.savefig(file, dpi=_DPI)


def draw_lines(
    values: Mapping[str, Mapping[int, Sequence[float]]],
    constant: Mapping[str, Sequence[float]],
    size: str,
    label: str,
    file: Path,
) -> None:
    """Draw values over sizes that double: the mean of each size, and every value as a point.

    Args:
        values: by the title of their line, and by size.
        constant: the values of what does not depend on the size, by title; a level line each, with
            a band from the least to the largest.
        size: what the sizes are.
        label: of the values.
        file: the picture to write.
    """
    figure, axes = _one_plot(height=4.5)
    sizes = sorted({n for by_size in values.values() for n in by_size})
    for title, by_size in values.items():
        known = {n: by_size[n] for n in sizes if n in by_size}
        (line,) = axes.plot(list(known), [np.mean(p) for p in known.values()], label=_plain(title))
        for n, points in known.items():
            axes.scatter([n] * len(points), points, s=14, color=line.get_color(), zorder=3)
    for title, points in constant.items():
        ends = [sizes[0], sizes[-1]] if sizes else [1, 2]
        (line,) = axes.plot(ends, [np.mean(points)] * 2, label=_plain(title), linestyle='--')
        axes.fill_between(ends, min(points), max(points), color=line.get_color(), alpha=0.15)
    axes.set_xscale('log', base=2)
    axes.set_xticks(sizes, map(str, sizes))
    axes.set(xlabel=size, ylabel=label)
    axes.grid(alpha=0.3)
    if axes.lines:
        figure.legend(loc='outside upper center', ncols=3, frameon=False)
    figure.savefig(file, dpi=_DPI)


def draw_ratios(
    records: Sequence[Record], parts: Sequence[str], file: Path, batch: str = 'images per step'
) -> None:
    """Draw the ratios over the batch size as bars that start at the initial ratios, all equal.

    w is above and w′ below, with a column per part. Bars show the mean over the seeds, whiskers
    one standard deviation.

    Args:
        records: of a variant with SN. Without any, nothing is drawn.
        parts: of the model, keys of the records' ratios.
        file: the picture to write.
        batch: what the batch size counts.
    """
    if not records:
        return
    figure = Figure(figsize=(3.2 * len(parts), 6), layout='constrained')
    grid = figure.subplots(2, len(parts), sharex=True, sharey=True, squeeze=False)
    for row, (kind, title) in zip(grid, TITLES.items(), strict=True):
        for axes, part in zip(row, parts, strict=True):
            _draw_bars(axes, records, part, kind)
        row[0].set_ylabel(title)
    for axes, part in zip(grid[0], parts, strict=True):
        axes.set_title(part)
    for axes in grid[1]:
        axes.set_xlabel(batch)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc='outside upper center', ncols=4)
    figure.savefig(file, dpi=_DPI)


def _plain(title: str) -> str:
    return title.replace('`', '')


def _one_plot(height: float = 4) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(6, height), layout='constrained')
    axes = figure.subplots()
    axes.set_prop_cycle(LINE_STYLES)
    return figure, axes


def _draw_curves(
    groups: Mapping[str, Sequence[Sequence[float]]],
    title: str,
    label: str,
    file: Path,
    bottom: float | None = None,
) -> None:
    figure, axes = _one_plot()
    for name, curves in groups.items():
        mean, std = np.mean(curves, 0), np.std(curves, 0, ddof=1) if len(curves) > 1 else 0
        epochs = np.arange(1, len(mean) + 1)
        axes.plot(epochs, mean, marker='o', label=name)
        axes.fill_between(epochs, mean - std, mean + std, alpha=0.2)
    axes.set(title=title, xlabel='epoch', ylabel=label, ylim=(bottom, None))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=_DPI)


def _draw_bars(axes: Axes, records: Sequence[Record], part: str, kind: str) -> None:
    batches = sorted({record.batch for record in records})
    scopes = list(records[0].ratios[part][kind])
    groups = {
        str(batch): {
            scope: [r.ratios[part][kind][scope] for r in records if r.batch == batch]
            for scope in scopes
        }
        for batch in batches
    }
    draw_bars(axes, groups, start=1 / len(scopes))
    axes.axhline(1 / len(scopes), color='black', linewidth=0.8)
