"""The figure of a course, by its lines and by the boxes of its labels."""

import pytest

from sn_openmmlab.analysis.course_figure import course_figure
from sn_openmmlab.analysis.ratio_course import Course
from sn_openmmlab.scopes import SCOPES
from tests.figure_checks import check_legible


def course(parts: list[str], steps: int = 30, scopes: tuple[str, ...] = tuple(SCOPES)) -> Course:
    """Return a course in which the first scope gains what the second loses."""
    share = 1 / len(scopes)
    return {
        50 * i: {
            part: {
                kind: {
                    scope: share + ((k == 0) - (k == 1)) * i / 200 for k, scope in enumerate(scopes)
                }
                for kind in ('mean', 'var')
            }
            for part in parts
        }
        for i in range(steps)
    }


def test_one_run_has_a_row_for_each_part() -> None:
    figure = course_figure({'run': course(['backbone', 'neck', 'all'], scopes=('in', 'bn'))})
    assert [axes.get_title().partition(':')[0] for axes in figure.axes[::2]] == [
        *('backbone', 'neck', 'all')
    ]
    first, other, start = figure.axes[0].lines
    assert (first.get_label(), other.get_label()) == ('in', 'bn')
    assert list(first.get_xdata()) == [50 * i for i in range(30)]
    assert list(first.get_ydata()) == pytest.approx([0.5 + i / 200 for i in range(30)])
    assert list(start.get_ydata()) == [0.5, 0.5]
    check_legible(figure)


def test_several_runs_have_a_row_each() -> None:
    figure = course_figure(
        {f'a run with a long name, {i}': course(['a', 'b', 'all'], steps=2) for i in range(3)}
    )
    assert len(figure.axes) == 6
    check_legible(figure)


@pytest.mark.parametrize('parts', [['backbone', 'all'], [*map(str, range(20)), 'all']])
def test_one_part_and_many_parts_are_shown_as_one(parts: list[str]) -> None:
    assert len(course_figure({'run': course(parts, steps=3)}).axes) == 2


def test_lines_are_told_apart_without_colors() -> None:
    lines = course_figure({'run': course(['all'])}).axes[0].lines[:-1]
    assert len({line.get_marker() for line in lines}) == len(lines) == len(SCOPES)


@pytest.mark.parametrize('courses', [{}, {'a': {}}])
def test_nothing_to_draw_is_an_error(courses: dict) -> None:
    with pytest.raises(ValueError, match='no course'):
        course_figure(courses)


def test_ratios_that_hardly_moved_look_so() -> None:
    moved = {'all': {kind: {'in': 0.500001, 'bn': 0.499999} for kind in ('mean', 'var')}}
    other = {'all': {'mean': moved['all']['mean'], 'var': {'in': 0.9, 'bn': 0.1}}}
    for last, ends in ((moved, (0.49, 0.51)), (other, (0.1, 0.9))):
        figure = course_figure({'a': {0: moved, 9: last}})
        check_legible(figure)
        for axes in figure.axes:
            low, high = axes.get_ylim()
            assert ends[0] - 0.1 < low <= ends[0] and ends[1] <= high < ends[1] + 0.1
            assert axes.get_xlim()[0] > -1 and axes.get_xlim()[1] < 10
