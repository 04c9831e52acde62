"""The figure of all layers, by its bars and by the boxes of its labels."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from sn_openmmlab.analysis.importance import LayerRatios
from sn_openmmlab.analysis.layer_figure import layers_figure
from sn_openmmlab.analysis.places import Place
from sn_openmmlab.analysis.ratio_style import COLORS
from tests.figure_checks import check_legible

KINDS = ('7x7', '1x1', '3x3', 'shortcut', 'depthwise', 'linear', 'none', '')


def layers(count: int, prefix: str = 'backbone.layer') -> list[LayerRatios]:
    """Return layers of a network with long names and all kinds of convolutions."""
    return [
        LayerRatios(
            f'{prefix}{i // 20}.{i % 20}.downsample.1',
            ('in', 'ln', 'bn'),
            (0.5, 0.3, 0.2),
            (0.1, 0.6, 0.3),
            Place(KINDS[i % len(KINDS)], i),
        )
        for i in range(count)
    ]


def stacks(axes: Axes) -> dict[str, tuple[float, float]]:
    """Return bottom and height of the first stacked bar by scope."""
    names = {color: scope for scope, color in COLORS.items()}
    first = min(bar.get_x() for bar in axes.patches)
    bars = [bar for bar in axes.patches if bar.get_x() == first]
    return {names[to_hex(bar.get_facecolor())]: (bar.get_y(), bar.get_height()) for bar in bars}


@pytest.mark.parametrize(
    ('scopes', 'mean', 'expected'),
    [
        (('in', 'ln', 'bn'), (0.5, 0.3, 0.2), {'in': (0, 0.5), 'ln': (0.5, 0.3), 'bn': (0.8, 0.2)}),
        (('bn', 'in'), (0.75, 0.25), {'in': (0, 0.25), 'bn': (0.25, 0.75)}),
        (('gn',), (1.0,), {'gn': (0, 1)}),
        (('in', 'bn'), (0.0, 1.0), {'bn': (0, 1)}),
    ],
)
def test_bar_stacks_the_ratios_in_one_order(scopes: tuple, mean: tuple, expected: dict) -> None:
    figure = layers_figure({'a': [LayerRatios('layer', scopes, mean, mean)]})
    for axes in figure.axes:
        found = {scope: place for scope, place in stacks(axes).items() if place[1]}
        assert found == {scope: pytest.approx(place) for scope, place in expected.items()}


def test_means_are_above_the_variances_and_networks_below_each_other() -> None:
    one, other = layers(3), [LayerRatios(r.name, r.scopes, r.var, r.mean) for r in layers(3)]
    figure = layers_figure({'small': one, 'large': other})
    assert [axes.get_title('left').partition(',')[0] for axes in figure.axes] == [
        'small: ratio of the mean',
        'small: ratio of the variance',
        'large: ratio of the mean',
        'large: ratio of the variance',
    ]
    heights = [stacks(axes)['in'][1] for axes in figure.axes]
    assert heights == pytest.approx([0.5, 0.1, 0.1, 0.5])


@pytest.mark.parametrize(('count', 'networks'), [(1, 1), (20, 1), (20, 3), (150, 1)])
def test_labels_neither_overlap_nor_run_off_the_page(count: int, networks: int) -> None:
    figure = layers_figure({f'a run with a long name, {i}': layers(count) for i in range(networks)})
    check_legible(figure)
    assert figure.get_figwidth() <= 12
    shown = [label.get_text() for axes in figure.axes for label in axes.get_xticklabels()]
    named = [name for name in shown if name]
    assert len(named) == count and len(set(named)) == count


def test_endless_names_are_shortened() -> None:
    figure = layers_figure({'run ' * 40: layers(20, 'backbone.' + 'residual_stage.' * 10)})
    check_legible(figure)


def test_mark_tells_the_convolution() -> None:
    figure = layers_figure({'a': layers(len(KINDS))})
    axes = figure.axes[0]
    marks = [line for line in axes.lines if line.get_linestyle() == 'None']
    # All but the layer of which nothing is known, and no two look alike.
    assert [line.get_xdata() for line in marks] == [[i] for i in range(len(KINDS) - 1)]
    looks = {(line.get_marker(), line.get_markerfacecolor()) for line in marks}
    assert len(looks) == len(marks)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()][3:] == [
        *('after 3x3', 'after 1x1', 'after shortcut', 'after depthwise', 'after linear'),
        *('after no convolution', 'after 7x7'),
    ]


def test_stages_stand_apart() -> None:
    figure = layers_figure({'a': layers(40)})
    places: Sequence[float] = figure.axes[0].get_xticks()
    gaps = [right - left for left, right in pairwise(places)]
    assert [i for i, gap in enumerate(gaps, 1) if gap > 1] == [20]


def test_dashed_lines_show_equal_ratios_of_as_many_scopes() -> None:
    def dashed(rows: list[LayerRatios]) -> list[float]:
        lines = layers_figure({'a': rows}).axes[0].lines
        return [line.get_ydata()[0] for line in lines if line.get_linestyle() == '--']

    assert dashed(layers(2)) == pytest.approx([1 / 3, 2 / 3])
    single = LayerRatios('b', ('ln', 'bn'), (0.5, 0.5), (0.5, 0.5))
    assert dashed([single]) == [0.5]
    assert dashed([*layers(1), single]) == []


@pytest.mark.parametrize('networks', [{}, {'a': []}])
def test_no_layers_are_an_error(networks: dict) -> None:
    with pytest.raises(ValueError, match='no SwitchNorm layer'):
        layers_figure(networks)


def test_networks_of_different_layers_are_an_error() -> None:
    with pytest.raises(ValueError, match='different layers'):
        layers_figure({'a': layers(3), 'b': layers(4)})
