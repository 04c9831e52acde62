"""The importance ratios of all layers as stacked bars, after Fig. 7 and 9 of the paper."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sn_openmmlab.analysis.importance import LayerRatios
from sn_openmmlab.analysis.ratio_style import (
    COLORS,
    DPI,
    TITLES,
    WIDTH,
    add_legend,
    mark_equal,
    patches,
    scopes_in_order,
    shortened,
)
from sn_openmmlab.analysis.ratio_table import Networks
from sn_openmmlab.scopes import SCOPES

# As many layers as the paper shows in a row: the 53 of a ResNet-50, and a few.
_IN_A_ROW = 56
_FONT = 7.0
# Inches: a plot's height, a bar's width, a letter's in a label, and the narrowest figure's width.
_PLOT, _BAR, _LETTER, _NARROWEST = 1.25, 0.195, 0.06, 8.0
# The marks above the bars, by the convolution before the layer.
_MARKS = {'3x3': 'o', '1x1': 'o', 'shortcut': 's', 'depthwise': 'D', 'linear': '_', 'none': 'x'}
_OTHER_MARK = '^'


def layers_figure(networks: Networks) -> Figure:
    """Return a figure with one stacked bar per layer: a plot for the means, one for the variances.

    Marks above the bars tell the convolution before the layer. Each part of the network, and each
    stage of a backbone, stands by itself. Networks with many layers go over several rows. Dashed
    lines show equal ratios, the initial ones, if all layers have the same number of scopes.

    Args:
        networks: the ratios of networks by label, whose layers have the same names. Their plots
            stand below each other.

    Raises:
        ValueError: there is no layer to draw, or the networks have different layers.
    """
    first = next(iter(networks.values()), ())
    if not first:
        raise ValueError('the model has no SwitchNorm layer whose ratios could be drawn.')
    if not same_layers(networks):
        raise ValueError('the networks have different layers, which cannot share a figure.')
    length = math.ceil(len(first) / math.ceil(len(first) / _IN_A_ROW))
    spans = [slice(i, i + length) for i in range(0, len(first), length)]
    units = max(_places(first[span])[-1] for span in spans) + 1.4
    plots = 2 * len(networks)
    labels = _labels(first)
    size = _size(labels, units, len(spans) * plots, len(spans))
    figure = Figure(figsize=size, dpi=DPI, layout='constrained')
    grid = figure.subplots(len(spans) * plots, 1, squeeze=False)[:, 0]
    for i, span in enumerate(spans):
        column = grid[i * plots : (i + 1) * plots]
        _draw_span(column, {label: rows[span] for label, rows in networks.items()})
        column[-1].set_xticks(column[-1].get_xticks(), labels[span], rotation=90)
        column[-1].tick_params(labelbottom=True)
    for axes in grid:
        axes.set_xlim(-0.7, units - 0.7)
    scopes = scopes_in_order(s for rows in networks.values() for row in rows for s in row.scopes)
    add_legend(figure, [*patches(scopes), *_marks_of(first)])
    return figure


def same_layers(networks: Networks) -> bool:
    """Return whether networks have the same layers, so that one figure can show all of them."""
    return len({tuple(row.name for row in rows) for rows in networks.values()}) == 1


def _size(labels: Sequence[str], units: float, plots: int, spans: int) -> tuple[float, float]:
    width = min(WIDTH, max(_NARROWEST, 0.8 + _BAR * units))
    return width, 0.6 + plots * _PLOT + spans * _LETTER * max(map(len, labels))


def _draw_span(axes_column: Sequence[Axes], networks: Networks) -> None:
    """Draw layers of every network below each other, without their names."""
    kinds = [(label, kind) for label in networks for kind in TITLES]
    for axes, (label, kind) in zip(axes_column, kinds, strict=True):
        rows = networks[label]
        places = _places(rows)
        _stack(axes, places, rows, kind)
        _mark(axes, places, rows)
        several = f'{shortened(label)}: ' if len(networks) > 1 else ''
        axes.set_title(several + TITLES[kind], fontsize=9, loc='left', pad=3)
        axes.set(ylim=(0, 1.15), yticks=[0, 0.5, 1])
        axes.set_xticks(places)
        axes.tick_params(labelsize=_FONT, labelbottom=False)
        axes.spines[['top', 'right']].set_visible(False)


def _stack(axes: Axes, places: Sequence[float], rows: Sequence[LayerRatios], kind: str) -> None:
    bottom = [0.0] * len(rows)
    for scope in SCOPES:
        heights = [
            dict(zip(row.scopes, getattr(row, kind), strict=True)).get(scope, 0.0) for row in rows
        ]
        if any(heights):
            axes.bar(places, heights, 0.86, bottom, color=COLORS[scope], label=scope)
        bottom = [start + height for start, height in zip(bottom, heights, strict=True)]
    count = len(rows[0].scopes)
    if all(len(row.scopes) == count for row in rows):
        for i in range(1, count):
            mark_equal(axes, i / count, color='white')


def _mark(axes: Axes, places: Sequence[float], rows: Sequence[LayerRatios]) -> None:
    """Put a mark above each bar that tells the convolution before the layer, if it is known."""
    for conv in dict.fromkeys(row.place.conv for row in rows if row.place.conv):
        marked = [x for x, row in zip(places, rows, strict=True) if row.place.conv == conv]
        axes.plot(marked, [1.07] * len(marked), **_mark_style(conv))


def _marks_of(rows: Sequence[LayerRatios]) -> list[Artist]:
    """Return what the legend shows for the convolutions, each mark once."""
    convs = dict.fromkeys(row.place.conv for row in rows if row.place.conv)
    texts = {conv: 'after no convolution' if conv == 'none' else f'after {conv}' for conv in _MARKS}
    handles = [_legend_mark(conv, text) for conv, text in texts.items() if conv in convs]
    others = [conv for conv in convs if conv not in _MARKS]
    return [*handles, *([_legend_mark(others[0], f'after {", ".join(others)}')] if others else [])]


def _legend_mark(conv: str, text: str) -> Artist:
    return Line2D([], [], label=text, **_mark_style(conv))


def _mark_style(conv: str) -> dict[str, Any]:
    return dict(
        marker=_MARKS.get(conv, _OTHER_MARK),
        markersize=3.5,
        color='black',
        markerfacecolor='white' if conv == '1x1' else 'black',
        linestyle='none',
        clip_on=False,
    )


def _places(rows: Sequence[LayerRatios]) -> list[float]:
    """Return where the bars stand: one beside the other, with a gap before another stage."""
    places = [0.0]
    for row, before in zip(rows[1:], rows, strict=False):
        places.append(places[-1] + (1.0 if _holder(row) == _holder(before) else 1.6))
    return places


def _holder(row: LayerRatios) -> tuple[str, str]:
    return row.part, row.stage


def _labels(rows: Sequence[LayerRatios]) -> list[str]:
    """Return the names of layers, without that of the only part if there is only one."""
    parts = {row.part for row in rows}
    prefix = f'{parts.pop()}.' if len(parts) == 1 else ''
    return [shortened(row.name.removeprefix(prefix)) for row in rows]
