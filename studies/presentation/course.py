"""Tables and a figure of a metric over the course of trainings, a row or line per statistics.

The metrics of the records are named `STATISTICS/METRIC`, and hold a value for each point.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sn_openmmlab.analysis.colors import LINES
from studies.experiments.records import Record
from studies.presentation.experiment_tables import spread
from studies.presentation.markdown import Column, table

# Told apart in grey by the dashes and the markers.
_LOOKS = [('-', 'o'), ('--', 's'), (':', '^'), ('-.', 'D')]


@dataclass(frozen=True)
class Course:
    """What was measured over the course of some trainings.

    Attributes:
        title: of the trainings.
        metric: its name in the records, below that of the statistics.
        label: of the metric.
        scale: of the records' values to percent.
        points: when it was measured, as shares of the training.
    """

    title: str
    metric: str
    label: str
    scale: float
    points: Sequence[float]

    def values(self, record: Record) -> dict[str, list[float]]:
        """Return the values at the points in percent, by the statistics."""
        end = f'/{self.metric}'
        return {
            name.removesuffix(end): [self.scale * value for value in values]
            for name, values in record.metrics.items()
            if name.endswith(end)
        }


def course_table(course: Course, groups: Mapping[str, Sequence[Record]]) -> str:
    """Return the mean and spread at each point in percent, a row per norm and statistics.

    Args:
        course: what was measured.
        groups: the records of each norm. A single seed is shown without a spread.
    """
    rows = [
        (norm, name, values)
        for norm, records in groups.items()
        for record in records
        for name, values in course.values(record).items()
    ]
    return _table(course, rows)


def difference_table(course: Course, groups: Mapping[str, Sequence[Record]], base: str) -> str:
    """Return the same of the differences from the statistics `base` in each training."""
    rows = []
    for norm, records in groups.items():
        for record in records:
            found = course.values(record)
            rows += [
                (norm, name, [a - b for a, b in zip(values, found[base], strict=True)])
                for name, values in found.items()
                if name != base
            ]
    return _table(course, rows)


def draw_courses(
    courses: Sequence[tuple[Course, Mapping[str, Sequence[Record]]]], file: Path
) -> None:
    """Draw each metric over its training: the mean, with a band of one standard deviation.

    A column for each of the courses, with the records of each norm, and a row for each norm.
    """
    norms = list(courses[0][1])
    # The legend above needs more room than one column.
    width = max(5.4, 4.2 * len(courses))
    figure = Figure(figsize=(width, 3.4 * len(norms)), layout='constrained')
    grid = figure.subplots(len(norms), len(courses), squeeze=False, sharey='col')
    for column, (course, groups) in zip(grid.T, courses, strict=True):
        for axes, norm in zip(column, norms, strict=True):
            _draw_lines(axes, course, groups[norm])
            axes.set_title(f'{norm}: {course.title}', fontsize=10)
        column[-1].set_xlabel('share of the training')
    handles = {
        label: handle
        for axes in grid.flat
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles, loc='outside upper center', ncols=len(handles))
    figure.savefig(file, dpi=110)


def _draw_lines(axes: Axes, course: Course, records: Sequence[Record]) -> None:
    for (name, seeds), (dashes, marker), color in zip(
        _by_statistics(course, records), _LOOKS, LINES, strict=False
    ):
        mean, std = np.mean(seeds, 0), np.std(seeds, 0, ddof=1) if len(seeds) > 1 else 0
        axes.plot(course.points, mean, dashes, marker=marker, color=color, label=name)
        axes.fill_between(course.points, mean - std, mean + std, color=color, alpha=0.15)
    axes.set_xscale('log', base=2)
    axes.set_xticks(course.points, [_share(point) for point in course.points])
    axes.set(ylabel=course.label, ylim=(0, None))
    axes.grid(alpha=0.3)


def _by_statistics(
    course: Course, records: Sequence[Record]
) -> Iterator[tuple[str, list[list[float]]]]:
    found = [course.values(record) for record in records]
    for name in found[0]:
        yield name, [values[name] for values in found]


def _table(course: Course, rows: Sequence[tuple[str, str, Sequence[float]]]) -> str:
    def cell(point: int) -> Column:
        return lambda group: spread(values[point] for _, _, values in group)

    columns: dict[str, Callable] = {_share(point): cell(i) for i, point in enumerate(course.points)}
    return table(rows, ['norm', 'statistics'], lambda row: row[:2], columns)


def _share(point: float) -> str:
    return str(Fraction(point).limit_denominator(64))
