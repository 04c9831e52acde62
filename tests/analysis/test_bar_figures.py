"""The figures of averaged ratios, by their bars and by the boxes of their labels."""

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from sn_openmmlab.analysis.bar_figures import draw_bars, networks_figure, parts_figure
from sn_openmmlab.analysis.importance import LayerRatios
from sn_openmmlab.analysis.ratio_style import COLORS
from tests.figure_checks import check_legible

DETECTOR = [
    LayerRatios('backbone.layer1.sn', ('in', 'ln', 'bn'), (0.5, 0.25, 0.25), (0.2, 0.2, 0.6)),
    LayerRatios('backbone.layer2.sn', ('in', 'ln', 'bn'), (0.25, 0.25, 0.5), (0.4, 0.2, 0.4)),
    LayerRatios('neck.sn', ('in', 'ln', 'bn'), (0.0, 1.0, 0.0), (0.1, 0.8, 0.1)),
]


def heights(axes: Axes) -> list[dict[str, float]]:
    """Return the heights of the bars by scope for each group, from left to right."""
    names = {color: scope for scope, color in COLORS.items()}
    groups: list[dict[str, float]] = [{} for _ in axes.get_xticks()]
    for bar in axes.patches:
        group = round(bar.get_x() + bar.get_width() / 2)
        groups[group][names[to_hex(bar.get_facecolor())]] = bar.get_height()
    return groups


def groups_of(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_xticklabels()]


def test_parts_have_the_averages_of_their_layers() -> None:
    means, variances = parts_figure({'detector': DETECTOR}).axes
    assert groups_of(means) == ['backbone', 'neck', 'all']
    assert heights(means) == [
        pytest.approx({'in': 0.375, 'ln': 0.25, 'bn': 0.375}),
        pytest.approx({'in': 0.0, 'ln': 1.0, 'bn': 0.0}),
        pytest.approx({'in': 0.25, 'ln': 0.5, 'bn': 0.25}),
    ]
    assert heights(variances)[0] == pytest.approx({'in': 0.3, 'ln': 0.2, 'bn': 0.5})


def test_network_of_one_part_is_divided_by_its_stages() -> None:
    assert groups_of(parts_figure({'a': DETECTOR[:2]}).axes[0]) == ['layer1', 'layer2', 'all']


def test_networks_have_the_averages_of_all_layers_side_by_side() -> None:
    one = [LayerRatios('x.sn', ('in', 'ln'), (0.75, 0.25), (0.5, 0.5))]
    means, variances = networks_figure({'(8, 2)': DETECTOR, '(8, 1)': one}).axes
    assert groups_of(means) == ['(8, 2)', '(8, 1)']
    # As in Fig. 4, where SN has no BN in (8, 1).
    assert heights(means)[1] == pytest.approx({'in': 0.75, 'ln': 0.25, 'bn': 0.0})
    assert heights(variances)[0] == pytest.approx({'in': 0.7 / 3, 'ln': 0.4, 'bn': 1.1 / 3})


@pytest.mark.parametrize('count', [1, 3, 12])
def test_labels_are_legible(count: int) -> None:
    networks = {f'faster-rcnn_r50_fpn_sn-all_{i}xb2': DETECTOR for i in range(count)}
    check_legible(networks_figure(networks))
    if count <= 3:
        check_legible(parts_figure(networks))


def test_many_parts_are_legible() -> None:
    rows = [LayerRatios(f'{i}.sn', ('in', 'bn'), (0.5, 0.5), (0.5, 0.5)) for i in range(40)]
    check_legible(parts_figure({'a': rows}))


def test_several_seeds_have_a_mean_and_a_whisker() -> None:
    axes = Figure().subplots()
    draw_bars(axes, {'2': {'in': [0.2, 0.4], 'bn': [0.6, 0.8]}})
    assert heights(axes) == [pytest.approx({'in': 0.3, 'bn': 0.7})]
    lines = [segment for line in axes.collections for segment in line.get_segments()]
    # One standard deviation: sqrt(0.02).
    assert [line[:, 1].tolist() for line in lines] == [
        pytest.approx([0.3 - 0.1414214, 0.3 + 0.1414214]),
        pytest.approx([0.7 - 0.1414214, 0.7 + 0.1414214]),
    ]


@pytest.mark.parametrize('figure', [parts_figure, networks_figure])
@pytest.mark.parametrize('networks', [{}, {'a': []}, {'a': DETECTOR, 'b': []}])
def test_no_layers_are_an_error(figure: object, networks: dict) -> None:
    with pytest.raises(ValueError, match='has no SN layer'):
        figure(networks)
