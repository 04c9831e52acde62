"""Averaged ratios as groups of bars: by part of a network, and across networks."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sn_openmmlab.analysis.importance import mean_ratios, ratios_by_part
from sn_openmmlab.analysis.ratio_style import (
    COLORS,
    DPI,
    TITLES,
    WIDTH,
    add_legend,
    fit_labels,
    mark_equal,
    patches,
    scopes_in_order,
    shortened,
)
from sn_openmmlab.analysis.ratio_table import Networks

# By 'mean' (w) or 'var' (w′), and by scope.
Averages = Mapping[str, Mapping[str, float]]
# By group of bars, and by scope: the value of each seed.
Bars = Mapping[str, Mapping[str, Sequence[float]]]


def parts_figure(networks: Networks) -> Figure:
    """Return a figure of the ratios averaged over each part of a network, and over all (Fig. 1a).

    A network of one part is divided by the stages of that part, as the layers of a backbone.

    Args:
        networks: the ratios of networks by label. Each has a row of plots.

    Raises:
        ValueError: there is no layer to draw.
    """
    return _bars_figure({label: ratios_by_part(layers) for label, layers in networks.items()})


def networks_figure(networks: Networks) -> Figure:
    """Return a figure of the ratios averaged over all layers, side by side for networks (Fig. 4).

    Args:
        networks: the ratios of networks by label, such as the batch size or the task.

    Raises:
        ValueError: a network has no layer.
    """
    averages = {label: mean_ratios(layers) for label, layers in networks.items()}
    if not averages or not all(averages.values()):
        raise ValueError('a network has no SN layer whose ratios could be drawn.')
    return _bars_figure({'': {label: parts['all'] for label, parts in averages.items()}})


def draw_bars(axes: Axes, groups: Bars, start: float = 0.0) -> None:
    """Draw groups of bars, one bar per scope: the mean over the seeds, and its spread.

    Args:
        axes: where to draw.
        groups: the values by label of the group and by scope. Whiskers show one standard deviation
            where there are several.
        start: where the bars start.
    """
    scopes = scopes_in_order(scope for bars in groups.values() for scope in bars)
    width = 0.8 / len(scopes)
    for i, scope in enumerate(scopes):
        places = np.arange(len(groups)) + (i - (len(scopes) - 1) / 2) * width
        values = [bars.get(scope, ()) for bars in groups.values()]
        heights = [np.mean(seeds) - start if len(seeds) else 0.0 for seeds in values]
        spread = [np.std(seeds, ddof=1) if len(seeds) > 1 else np.nan for seeds in values]
        whiskers = None if np.isnan(spread).all() else spread
        style = dict(color=COLORS[scope], edgecolor='white', linewidth=0.4, label=scope)
        axes.bar(places, heights, width, start, yerr=whiskers, **style)
    axes.set_xticks(range(len(groups)), [shortened(label) for label in groups])
    axes.set_axisbelow(True)
    axes.grid(axis='y', alpha=0.3)


def _bars_figure(rows: Mapping[str, Mapping[str, Averages]]) -> Figure:
    """Return a figure with a row of two plots, w and w′, for each label of `rows`."""
    if not rows or not all(rows.values()):
        raise ValueError('a network has no SN layer whose ratios could be drawn.')
    most = max(map(len, rows.values()))
    size = (max(WIDTH, 1.5 + 0.6 * most), 0.9 + 2.6 * len(rows))
    figure = Figure(figsize=size, dpi=DPI, layout='constrained')
    grid = figure.subplots(len(rows), 2, sharey=True, squeeze=False)
    scopes: list[str] = []
    for axes_row, (label, groups) in zip(grid, rows.items(), strict=True):
        for axes, (kind, title) in zip(axes_row, TITLES.items(), strict=True):
            bars = {group: _single(averages[kind]) for group, averages in groups.items()}
            draw_bars(axes, bars)
            axes.set_title(f'{shortened(label)}: {title}' if label else title, fontsize=10)
            _mark_start(axes, bars)
            scopes += [scope for group in bars.values() for scope in group]
    add_legend(figure, patches(scopes_in_order(scopes)))
    fit_labels(figure)
    return figure


def _single(ratios: Mapping[str, float]) -> dict[str, list[float]]:
    return {scope: [ratio] for scope, ratio in ratios.items()}


def _mark_start(axes: Axes, bars: Bars) -> None:
    counts = {len(scopes) for scopes in bars.values()}
    if len(counts) == 1:
        mark_equal(axes, 1 / counts.pop())
