"""The chart of importance ratios, read back as a picture."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from sn_openmmlab.analysis.importance import LayerRatios
from sn_openmmlab.analysis.ratio_chart import COLORS, draw_ratio_chart


def same_color(picture: np.ndarray, scope: str) -> np.ndarray:
    """Return where a picture has the color of a scope, as a table of booleans."""
    color = [int(COLORS[scope][i : i + 2], 16) for i in (1, 3, 5)]
    pixels = np.rint(picture[..., :3] * 255)
    return (np.abs(pixels - color) <= 2).all(-1)


def draw(rows: list[LayerRatios], folder: Path) -> np.ndarray:
    draw_ratio_chart(rows, folder / 'chart.png')
    return imread(folder / 'chart.png')


def bars(picture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a row of pixels of the only bar, below the legend: of the means, of the variances."""
    width = picture.shape[1]
    colored = np.any([same_color(picture, scope) for scope in COLORS], axis=0)
    top = int(np.flatnonzero(colored.sum(1) > width // 2).min())
    row = picture[[top + 3]]
    half = width // 2 + int(np.flatnonzero(~colored[top + 3, width // 2 :]).min())
    return row[:, :half], row[:, half:]


@pytest.mark.parametrize(
    ('scopes', 'mean', 'var'),
    [
        (('in', 'ln', 'bn'), (0.5, 0.3, 0.2), (0.1, 0.6, 0.3)),
        (('bn', 'in'), (0.7, 0.3), (0.4, 0.6)),
        (('in', 'gn', 'ln', 'bn'), (0.25, 0.25, 0.3, 0.2), (0.4, 0.3, 0.2, 0.1)),
        (('gn',), (1.0,), (1.0,)),
    ],
)
def test_bar_shows_the_ratios_in_the_colors_of_the_scopes(
    scopes: tuple, mean: tuple, var: tuple, tmp_path: Path
) -> None:
    picture = draw([LayerRatios('layer', scopes, mean, var)], tmp_path)
    for bar, ratios in zip(bars(picture), (mean, var), strict=True):
        counts = {scope: same_color(bar, scope).sum() for scope in COLORS}
        shares = {scope: count / sum(counts.values()) for scope, count in counts.items()}
        expected = dict.fromkeys(COLORS, 0.0) | dict(zip(scopes, ratios, strict=True))
        assert shares == pytest.approx(expected, abs=0.02)


def test_scopes_stack_in_one_order_whatever_the_layer_says(tmp_path: Path) -> None:
    picture = draw([LayerRatios('layer', ('bn', 'in'), (0.5, 0.5), (0.5, 0.5))], tmp_path)
    for bar in bars(picture):
        places = {scope: np.flatnonzero(same_color(bar, scope)).mean() for scope in ('in', 'bn')}
        assert places['in'] < places['bn'], 'the first scope is on the left'


def test_layers_of_different_scopes_share_a_chart(tmp_path: Path) -> None:
    rows = [
        LayerRatios('a', ('in', 'bn'), (0.5, 0.5), (0.5, 0.5)),
        LayerRatios('b', ('ln',), (1.0,), (1.0,)),
    ]
    picture = draw(rows, tmp_path)
    counts = {scope: same_color(picture, scope).sum() for scope in COLORS}
    assert counts['gn'] == 0
    assert counts['in'] == pytest.approx(counts['bn'], rel=0.05)
    assert counts['ln'] == pytest.approx(counts['in'] + counts['bn'], rel=0.05)


@pytest.mark.parametrize(('layers', 'pixels'), [(1, 142), (20, 560), (65, 1550)])
def test_chart_grows_with_the_layers(layers: int, pixels: int, tmp_path: Path) -> None:
    rows = [
        LayerRatios(f'backbone.layer{i}.norm', ('in', 'ln'), (0.9, 0.1), (0.1, 0.9))
        for i in range(layers)
    ]
    assert draw(rows, tmp_path).shape == (pixels, 1200, 4)


def test_chart_of_no_layers_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match='no SwitchNorm layer'):
        draw_ratio_chart([], tmp_path / 'chart.png')
    assert list(tmp_path.iterdir()) == []
