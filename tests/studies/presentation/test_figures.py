"""The figures, read back as pictures."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from sn_openmmlab.analysis.ratio_style import COLORS
from studies.presentation.figures import draw_ap, draw_final_ap, draw_growth, draw_ratios

FIRST, SECOND = '#0072b2', '#e69f00'


def same_color(picture: np.ndarray, color: str) -> np.ndarray:
    return (np.abs(picture[..., :3] - to_rgb(color)) < 0.01).all(-1)


def test_line_of_the_mean_and_its_band(make_record: Callable, tmp_path: Path) -> None:
    groups = {
        'low': [make_record('bn', 2, seed, (0.1, ap)) for seed, ap in enumerate((0.1, 0.2, 0.3))],
        'high': [make_record('gn', 2, seed, (0.1, 0.4)) for seed in range(3)],
    }
    draw_ap(groups, 'a title', tmp_path / 'ap.png')
    picture = imread(tmp_path / 'ap.png')
    assert picture.shape == (4 * 110, 6 * 110, 4)
    # The last epoch's markers lie in the last columns that have colour: 20 and 40 over the axis,
    # which is at the height of no AP.
    first, second = (same_color(picture, color) for color in (FIRST, SECOND))
    right = np.flatnonzero(second.any(0)).max()
    low, high = (
        np.flatnonzero(line[:, right - 6 : right].any(1)).mean() for line in (first, second)
    )
    axis = np.flatnonzero((picture[:, right + 5, :3] < 0.1).all(-1)).max()
    assert (axis - low) / (axis - high) == pytest.approx(20 / 40, abs=0.03)
    # The band of the first line spans two standard deviations, 20 of AP, as far as from the axis
    # to its mean. The second line has no band. The opacity of a band is a fifth.
    tint = 0.2 * np.array(to_rgb(FIRST)) + 0.8
    band = (np.abs(picture[..., :3] - tint) < 0.02).all(-1)
    column = np.flatnonzero(band[:, right - 10])
    assert column.max() - column.min() == pytest.approx(axis - low, rel=0.1)
    tint = 0.2 * np.array(to_rgb(SECOND)) + 0.8
    assert (np.abs(picture[..., :3] - tint) < 0.01).all(-1).sum() < 200


def test_bars_rise_and_fall_from_the_equal_ratios(make_record: Callable, tmp_path: Path) -> None:
    records = [make_record('sn', 2, seed, (0.5,), (0.5, 0.3, 0.2)) for seed in range(2)]
    draw_ratios(records, ['backbone'], tmp_path / 'ratios.png')
    picture = imread(tmp_path / 'ratios.png')
    # The bars are below the legend. The bars of the variances have no height.
    bars = {scope: same_color(picture, COLORS[scope]) for scope in ('in', 'ln', 'bn')}
    spans = {}
    for scope, colored in bars.items():
        colored[:60] = False
        rows = np.flatnonzero(colored.sum(1) > 20)
        spans[scope] = (rows.min(), rows.max())
    above, below, further = spans['in'], spans['ln'], spans['bn']
    assert above[1] <= below[0]
    assert abs(below[0] - further[0]) <= 2
    heights = {scope: span[1] - span[0] for scope, span in spans.items()}
    # 0.5, 0.3 and 0.2 lie 1/6, 1/30 and 2/15 from a third.
    assert heights['bn'] / heights['in'] == pytest.approx(4 / 5, abs=0.03)
    assert heights['ln'] / heights['in'] == pytest.approx(1 / 5, abs=0.03)
    columns = [np.flatnonzero(bars[scope].any(0)).mean() for scope in ('in', 'ln', 'bn')]
    assert columns == sorted(columns)


def test_column_for_each_part_and_group_for_each_batch(
    make_record: Callable, tmp_path: Path
) -> None:
    records = [
        make_record('sn', batch, seed, (0.5,), (0.5, 0.3, 0.2))
        for batch in (4, 1)
        for seed in range(2)
    ]
    draw_ratios(records, ['backbone', 'neck', 'bbox_head'], tmp_path / 'ratios.png')
    picture = imread(tmp_path / 'ratios.png')
    assert picture.shape == (6 * 110, round(9.6 * 110), 4)
    colored = same_color(picture, COLORS['in'])
    colored[:60] = False
    columns = (colored.sum(0) > 20).astype(int)
    assert (np.diff(columns) == 1).sum() == 3 * 2


def test_points_lie_at_their_ap(make_record: Callable, tmp_path: Path) -> None:
    groups = {
        title: [make_record('bn', 2, seed, (0.4, ap)) for seed in range(2)]
        for title, ap in (('first', 0.1), ('second', 0.2))
    }
    draw_final_ap(groups, tmp_path / 'points.png')
    picture = imread(tmp_path / 'points.png')[..., :3]
    places = {}
    for color in (FIRST, SECOND):
        rows, columns = np.nonzero((np.abs(picture - to_rgb(color)) < 0.05).all(-1))
        places[color] = rows.mean(), columns.mean()
    (top, near), (bottom, far) = places.values()
    assert top < bottom
    # The axis at zero is the dark column left of both.
    dark = (picture < 0.1).all(-1).sum(0) > 0.5 * picture.shape[0]
    axis = np.flatnonzero(dark)[0]
    assert (near - axis) / (far - axis) == pytest.approx(0.5, abs=0.03)


def test_growth_on_logarithmic_axes_is_a_straight_line(tmp_path: Path) -> None:
    records = [
        {'elements': n, 'milliseconds': {'BN': [n / 1e4], 'SN fused': [n / 1e3]}}
        for n in (10**3, 10**5, 10**7)
    ]
    draw_growth(records, 'a title', tmp_path / 'growth.png')
    picture = imread(tmp_path / 'growth.png')
    line = same_color(picture, FIRST)
    # Right of the legend, between the markers.
    columns = (420, 500, 580)
    left, middle, right = (np.flatnonzero(line[:, column]).mean() for column in columns)
    assert middle == pytest.approx((left + right) / 2, abs=2)
    assert right < left
