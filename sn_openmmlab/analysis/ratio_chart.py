"""The importance ratios of all layers as a chart, after Fig. 1 of the paper."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sn_openmmlab.analysis.importance import LayerRatios
from sn_openmmlab.scopes import SCOPES

COLORS = {name: scope.color for name, scope in SCOPES.items()}


def draw_ratio_chart(rows: Sequence[LayerRatios], file: str | Path) -> None:
    """Draw one stacked bar per layer, the ratios of the means above those of the variances.

    Raises:
        ValueError: there is no layer to draw.
    """
    if not rows:
        raise ValueError('the model has no SwitchNorm layer whose ratios could be drawn.')
    figure = Figure(figsize=(max(8, 2 + 0.3 * len(rows)), 8), layout='constrained')
    means, variances = figure.subplots(2, 1, sharex=True)
    _stack(means, rows, [row.mean for row in rows], 'ratio of the mean, $w_k$')
    _stack(variances, rows, [row.var for row in rows], "ratio of the variance, $w'_k$")
    means.legend(ncols=len(SCOPES), loc='lower center', bbox_to_anchor=(0.5, 1.0), frameon=False)
    variances.set_xticks(range(len(rows)), [row.name for row in rows], rotation=90, fontsize=7)
    figure.savefig(file, dpi=130)


def _stack(
    axes: Axes, rows: Sequence[LayerRatios], ratios: list[tuple[float, ...]], title: str
) -> None:
    bottom = [0.0] * len(rows)
    for scope in SCOPES:
        heights = [
            dict(zip(row.scopes, values, strict=True)).get(scope, 0.0)
            for row, values in zip(rows, ratios, strict=True)
        ]
        if any(heights):
            axes.bar(range(len(rows)), heights, 0.8, bottom, color=COLORS[scope], label=scope)
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    axes.set(ylim=(0, 1), xlim=(-0.6, len(rows) - 0.4), ylabel=title)
