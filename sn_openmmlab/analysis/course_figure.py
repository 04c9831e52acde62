"""The course of the ratios over a training as lines."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import Normal, Stroke

from sn_openmmlab.analysis.ratio_course import Course
from sn_openmmlab.analysis.ratio_style import (
    COLORS,
    DPI,
    TITLES,
    WIDTH,
    add_legend,
    mark_equal,
    scopes_in_order,
    shortened,
)

_MARKERS = {'in': 'o', 'gn': 'X', 'ln': '^', 'bn': 's'}
# A network of more parts has a row for all layers alone.
_MOST_PARTS = 8
# The vertical axis reaches at least this far below and above equal ratios.
_LEAST = 0.01


def course_figure(courses: Mapping[str, Course]) -> Figure:
    """Return a figure of the ratios over the iterations: one plot for w, one for w′.

    One run has a row of plots for each part of its network and for all layers. Of several runs each
    has a row, with the average over all layers.

    Args:
        courses: the courses of runs by label.

    Raises:
        ValueError: there is nothing to draw.
    """
    rows = _rows(courses)
    if not rows:
        raise ValueError('there is no course of ratios to draw.')
    figure = Figure(figsize=(WIDTH, 1.2 + 2.4 * len(rows)), dpi=DPI, layout='constrained')
    grid = figure.subplots(len(rows), 2, sharey=True, squeeze=False)
    scopes: list[str] = []
    for axes_row, (label, (course, part)) in zip(grid, rows.items(), strict=True):
        for axes, (kind, title) in zip(axes_row, TITLES.items(), strict=True):
            scopes += _draw(axes, course, part, kind)
            axes.set_title(f'{shortened(label)}: {title}', fontsize=10)
    for axes in grid[-1]:
        axes.set_xlabel('iteration')
    for axes in grid.flat:
        axes.xaxis.get_major_locator().set_params(integer=True)
    add_legend(figure, [_line(scope) for scope in scopes_in_order(scopes)])
    return figure


def _rows(courses: Mapping[str, Course]) -> dict[str, tuple[Course, str]]:
    """Return the course and the part of the network that each row shows, by its label."""
    found = {label: course for label, course in courses.items() if course}
    if len(found) != 1:
        return {label: (course, 'all') for label, course in found.items()}
    (course,) = found.values()
    parts = list(dict.fromkeys(part for ratios in course.values() for part in ratios))
    # Besides one part, 'all' would show the same twice.
    few = 2 < len(parts) <= _MOST_PARTS
    return {part: (course, part) for part in (parts if few else ['all'])}


def _draw(axes: Axes, course: Course, part: str, kind: str) -> list[str]:
    """Draw the lines of one part and return their scopes."""
    points = {step: ratios[part][kind] for step, ratios in course.items() if part in ratios}
    scopes = scopes_in_order(scope for ratios in points.values() for scope in ratios)
    every = max(1, len(points) // 12)
    for scope in scopes:
        line = _line(scope)
        line.set_data(list(points), [ratios.get(scope, 0.0) for ratios in points.values()])
        line.set_markevery(every)
        axes.add_line(line)
    equal = 1 / len(scopes)
    mark_equal(axes, equal)
    # Ratios that hardly moved must not look as if they had.
    axes.update_datalim([(0, equal - _LEAST), (0, equal + _LEAST)], updatex=False)
    axes.autoscale_view()
    axes.grid(alpha=0.3)
    return scopes


def _line(scope: str) -> Line2D:
    """Return a line in the colour of a scope, with an edge that shows pale colours on white."""
    return Line2D(
        [],
        [],
        color=COLORS[scope],
        marker=_MARKERS[scope],
        markeredgecolor='black',
        markeredgewidth=0.6,
        markersize=5,
        linewidth=2,
        path_effects=[Stroke(linewidth=3, foreground='black'), Normal()],
        label=scope,
    )
