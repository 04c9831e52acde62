"""The importance ratios of all layers as a chart, after Fig. 1 of the paper."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sn_openmmlab.analysis.importance import LayerRatios
from sn_openmmlab.scopes import SCOPES

COLORS = {name: scope.color for name, scope in SCOPES.items()}


def draw_ratio_chart(rows: Sequence[LayerRatios], file: str | Path) -> None:
    """Draw one stacked bar per layer, the ratios of the means beside those of the variances.

    Dashed lines show equal ratios, the initial ones, if all layers have the same number of scopes.

    Raises:
        ValueError: there is no layer to draw.
    """
    if not rows:
        raise ValueError('the model has no SwitchNorm layer whose ratios could be drawn.')
    figure = Figure(figsize=(12, 1.2 + 0.22 * len(rows)), layout='constrained')
    means, variances = figure.subplots(1, 2, sharey=True)
    _stack(means, rows, [row.mean for row in rows], 'ratio of the mean, $w_k$')
    _stack(variances, rows, [row.var for row in rows], "ratio of the variance, $w'_k$")
    means.set_yticks(range(len(rows)), [row.name for row in rows], fontsize=9)
    means.set_ylim(len(rows) - 0.4, -0.6)
    handles, labels = means.get_legend_handles_labels()
    figure.legend(handles, labels, loc='outside upper center', ncols=len(SCOPES), frameon=False)
    figure.savefig(file, dpi=100)


def _stack(
    axes: Axes, rows: Sequence[LayerRatios], ratios: Sequence[tuple[float, ...]], title: str
) -> None:
    left = [0.0] * len(rows)
    for scope in SCOPES:
        widths = [
            dict(zip(row.scopes, values, strict=True)).get(scope, 0.0)
            for row, values in zip(rows, ratios, strict=True)
        ]
        if any(widths):
            axes.barh(range(len(rows)), widths, 0.8, left, color=COLORS[scope], label=scope)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    count = len(rows[0].scopes)
    if all(len(row.scopes) == count for row in rows):
        for i in range(1, count):
            axes.axvline(i / count, color='white', linewidth=1, linestyle='--')
    axes.set(xlim=(0, 1), title=title)
