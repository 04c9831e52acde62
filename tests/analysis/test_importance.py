"""The importance ratios of a model, against softmax by hand."""

from math import exp, log

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from sn_openmmlab.analysis.importance import LayerRatios, importance_ratios, mean_ratios
from sn_openmmlab.layers.sparse import sparsify
from sn_openmmlab.layers.switch_norm import SwitchNorm


def network() -> nn.Module:
    """Return two SN layers whose λ and λ′ are logarithms, so that the ratios are fractions."""
    stem = SwitchNorm(4)
    head = SwitchNorm(4, scopes=('bn', 'gn'), num_groups=2)
    controls = {
        stem.mean_weight: [1.0, 2.0, 3.0],
        stem.var_weight: [2.0, 7.0, 1.0],
        head.mean_weight: [3.0, 1.0],
        head.var_weight: [1.0, 1.0],
    }
    with torch.no_grad():
        for control, numbers in controls.items():
            control.copy_(torch.tensor([log(number) for number in numbers]))
    block = nn.ModuleDict({'conv': nn.Conv2d(4, 4, 1, stride=2), 'bn': nn.BatchNorm2d(4)})
    body = nn.ModuleDict({'conv': nn.Conv2d(4, 4, 3, stride=(2, 1)), 'norm': head})
    return nn.ModuleDict({'stem': stem, 'blocks': nn.Sequential(block, body)})


def test_ratios_are_the_softmax_of_the_controls() -> None:
    stem, head = importance_ratios(network())
    assert (stem.name, stem.scopes) == ('stem', ('in', 'ln', 'bn'))
    assert stem.mean == pytest.approx((1 / 6, 2 / 6, 3 / 6))
    assert stem.var == pytest.approx((0.2, 0.7, 0.1))
    assert (head.name, head.scopes) == ('blocks.1.norm', ('bn', 'gn'))
    assert head.mean == pytest.approx((0.75, 0.25))
    assert head.var == pytest.approx((0.5, 0.5))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-80, 80, width=32), min_size=3, max_size=3))
def test_any_controls_give_equation_5(controls: list[float]) -> None:
    layer = SwitchNorm(4)
    with torch.no_grad():
        layer.var_weight.copy_(torch.tensor(controls))

    (row,) = importance_ratios(layer)

    total = sum(exp(control) for control in controls)
    assert row.var == pytest.approx([exp(control) / total for control in controls], abs=1e-6)


def test_place_is_that_of_the_convolution_before_the_layer() -> None:
    stem, head = importance_ratios(network())
    assert stem.place == ('none', 0, None)
    assert head.place == ('3x3', 2, 2)


def test_wrapped_model_has_the_ratios_of_the_bare_one() -> None:
    model = network()
    assert importance_ratios(nn.DataParallel(model)) == importance_ratios(model)


def test_model_without_the_layer_has_no_ratios() -> None:
    assert importance_ratios(nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1))) == []


def test_layer_itself_is_found() -> None:
    (row,) = importance_ratios(SwitchNorm(2))
    assert row.mean == pytest.approx((1 / 3,) * 3)


def test_groups_with_ratios_of_their_own_have_a_row_each() -> None:
    layer = SwitchNorm(4, scopes=('in', 'bn'), num_ratio_groups=2)
    with torch.no_grad():
        layer.mean_weight.copy_(torch.tensor([[log(3.0), 0.0], [0.0, 0.0]]))

    first, second = importance_ratios(nn.ModuleDict({'stem': layer}))

    assert (first.name, second.name) == ('stem (group 1)', 'stem (group 2)')
    assert (first.part, first.stage) == ('stem', 'stem')
    assert first.mean == pytest.approx((0.75, 0.25)) and second.mean == pytest.approx((0.5, 0.5))


def test_ratios_of_a_sparse_layer_are_its_choice() -> None:
    (row,) = importance_ratios(sparsify(network()['stem']))

    assert row.mean == (0, 0, 1) and row.var == (0, 1, 0)


def test_averages_are_those_of_each_part_and_of_all_layers() -> None:
    layers = [
        LayerRatios('roi_head.shared_head.layer4.0.sn1', ('in', 'bn'), (0.25, 0.75), (1.0, 0.0)),
        LayerRatios('backbone.layer1.0.sn1', ('in', 'bn'), (0.5, 0.5), (0.0, 1.0)),
        LayerRatios('backbone.layer2.0.sn1', ('in', 'bn'), (1.0, 0.0), (0.5, 0.5)),
    ]
    found = mean_ratios(layers)
    assert list(found) == ['shared_head', 'backbone', 'all']
    assert found['backbone'] == {'mean': {'in': 0.75, 'bn': 0.25}, 'var': {'in': 0.25, 'bn': 0.75}}
    assert found['all']['mean']['in'] == pytest.approx(1.75 / 3)
    assert list(mean_ratios(layers, lambda layer: layer.stage)) == [
        'layer4',
        'layer1',
        'layer2',
        'all',
    ]
    assert mean_ratios([]) == {}


def test_layer_without_a_scope_counts_with_the_ratio_zero() -> None:
    layers = [
        LayerRatios('a', ('in', 'ln'), (0.5, 0.5), (1.0, 0.0)),
        LayerRatios('b', ('ln', 'bn'), (0.25, 0.75), (0.5, 0.5)),
    ]
    averages = mean_ratios(layers)['all']
    assert averages['mean'] == {'in': 0.25, 'ln': 0.375, 'bn': 0.375}
    assert averages['var'] == {'in': 0.5, 'ln': 0.25, 'bn': 0.25}


def test_groups_of_a_layer_together_weigh_as_one_layer() -> None:
    grouped = SwitchNorm(4, scopes=('in', 'bn'), num_ratio_groups=2)
    plain = SwitchNorm(4, scopes=('in', 'bn'))
    with torch.no_grad():
        grouped.mean_weight.copy_(torch.tensor([[log(3.0), 0.0], [0.0, 0.0]]))
        plain.mean_weight.copy_(torch.tensor([0.0, log(3.0)]))
    averages = mean_ratios(importance_ratios(nn.ModuleDict({'a': grouped, 'b': plain})))['all']
    assert averages['mean']['in'] == pytest.approx(((0.75 + 0.5) / 2 + 0.25) / 2)
