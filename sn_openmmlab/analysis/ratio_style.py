"""What the figures of ratios share: colours, titles, a legend of scopes, labels that fit."""

import math
from collections.abc import Iterable, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from sn_openmmlab.scopes import SCOPES

COLORS = {name: scope.color for name, scope in SCOPES.items()}
TITLES = {'mean': 'ratio of the mean, $w_k$', 'var': "ratio of the variance, $w'_k$"}
DPI = 110
WIDTH = 12.0
_LONGEST = 48
_IN_A_ROW = 7


def scopes_in_order(scopes: Iterable[str]) -> list[str]:
    """Return the different scopes in the order in which all figures show them."""
    present = set(scopes)
    return [scope for scope in SCOPES if scope in present]


def patches(scopes: Sequence[str]) -> list[Artist]:
    """Return what a legend shows for scopes."""
    return [Patch(facecolor=COLORS[scope], edgecolor='white', label=scope) for scope in scopes]


def add_legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """Put a legend above the plots of a figure, in several rows if it is long."""
    columns = math.ceil(len(handles) / math.ceil(len(handles) / _IN_A_ROW))
    figure.legend(
        handles=list(handles),
        loc='outside upper center',
        ncols=columns,
        frameon=False,
        fontsize=9,
    )


def mark_equal(axes: Axes, height: float, color: str = 'black') -> None:
    """Draw a dashed line at the height of equal ratios, where a training starts."""
    axes.axhline(height, color=color, linewidth=0.8, linestyle='--')


def shortened(label: str) -> str:
    """Return a label of at most 48 characters as text, with … in place of its middle."""
    half = _LONGEST // 2
    label = label if len(label) <= _LONGEST else f'{label[: half - 1]}…{label[-half:]}'
    # Names of files may hold bytes that are no text. matplotlib reads formulas between signs of $.
    return label.encode(errors='replace').decode().replace('$', r'\$')


def fit_labels(figure: Figure) -> None:
    """Turn the labels of a horizontal axis upright where one is wider than its share of it.

    The figure grows by what they take of its height.
    """
    figure.draw_without_rendering()
    upright = 0.0
    for axes in figure.axes:
        widths = [label.get_window_extent().width for label in axes.get_xticklabels()]
        if max(widths) > axes.get_window_extent().width / len(widths) - 4:
            axes.tick_params(axis='x', labelrotation=90)
            row = axes.get_subplotspec()
            upright = max(upright, max(widths) * row.get_gridspec().nrows)
    figure.set_figheight(figure.get_figheight() + upright / figure.dpi)
