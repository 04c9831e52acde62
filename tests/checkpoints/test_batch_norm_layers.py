"""The SN layers of a model take over BatchNorm layers from the weights of a file."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from sn_openmmlab.checkpoints.batch_norm_layers import fill_layers
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.switch_norm import SwitchNorm


def layers_of(model: nn.Module) -> dict[str, SwitchNorm]:
    return {name: m for name, m in model.named_modules() if isinstance(m, SwitchNorm)}


@pytest.mark.parametrize('abbreviation', ['sn', 'bn'])
def test_model_is_filled_whatever_its_layers_are_called(
    abbreviation: str, bn_weights: dict, build_net: Callable
) -> None:
    model = build_net(SwitchNorm, abbreviation)
    filled = fill_layers(layers_of(model), bn_weights, 0.5)
    assert filled.keys() == model.state_dict().keys()
    model.load_state_dict(filled)
    for theirs in ('bn1', 'layer.bn', 'layer.convs.0'):
        ours = theirs.replace('bn', abbreviation)
        for part in ('weight', 'bias', 'running_mean', 'running_var', 'num_batches_tracked'):
            assert torch.equal(filled[f'{ours}.{part}'], bn_weights[f'{theirs}.{part}'])
    for layer in layers_of(model).values():
        for ratios in layer.importance_ratios():
            assert ratios.tolist() == pytest.approx([0.25, 0.25, 0.5])


def test_layer_that_is_the_whole_model_is_filled() -> None:
    layer, norm = SwitchNorm(4), nn.BatchNorm2d(4)
    norm.running_mean.fill_(3)
    layer.load_state_dict(fill_layers({'': layer}, norm.state_dict(), 1))
    assert layer.running_mean.tolist() == [3] * 4
    assert layer.importance_ratios()[0].tolist() == [0, 0, 1]


def test_layers_that_have_controls_in_the_file_stay(bn_weights: dict, build_net: Callable) -> None:
    for part in ('mean_weight', 'var_weight'):
        bn_weights[f'layer.convs.0.{part}'] = torch.tensor([3.0, 2.0, 1.0])
    filled = fill_layers(layers_of(build_net(SwitchNorm, 'sn')), bn_weights, 0.5)
    assert filled['layer.convs.0.mean_weight'].tolist() == [3, 2, 1]
    assert filled['sn1.mean_weight'].tolist() != [3, 2, 1]


def test_frozen_layers_start_at_a_ratio_of_one(bn_weights: dict, build_net: Callable) -> None:
    layers = layers_of(build_net(SwitchNorm, 'sn'))
    layers['sn1'].requires_grad_(False)
    filled = fill_layers(layers, bn_weights, 0.5)
    assert filled['sn1.var_weight'].softmax(0).tolist() == [0, 0, 1]
    assert filled['layer.sn.var_weight'].softmax(0).tolist() == pytest.approx([0.25, 0.25, 0.5])


def test_layers_without_a_batch_norm_are_named(bn_weights: dict, build_net: Callable) -> None:
    layers = {**layers_of(build_net(SwitchNorm, 'sn')), 'sn2': SwitchNorm(4), 'a': SwitchNorm(4)}
    with pytest.raises(UsageError, match=r'neither SN nor BatchNorm for these SN .*: sn2, a\.$'):
        fill_layers(layers, bn_weights, 0.5)


def test_layer_without_the_batch_scope_is_named(bn_weights: dict, build_net: Callable) -> None:
    model = build_net(lambda channels: SwitchNorm(channels, scopes=('in', 'ln')), 'sn')
    with pytest.raises(UsageError, match=r"sn1 mixes in, ln, which cannot .* of bn1: add 'bn' to"):
        fill_layers(layers_of(model), bn_weights, 0.5)


@pytest.mark.parametrize('ratio', [0, 2, 'much'])
def test_impossible_ratio_is_one_sentence(
    ratio: object, bn_weights: dict, build_net: Callable
) -> None:
    layers = layers_of(build_net(SwitchNorm, 'sn'))
    for trains in (True, False):
        for layer in layers.values():
            layer.requires_grad_(trains)
        with pytest.raises(UsageError, match='batch_ratio'):
            fill_layers(layers, bn_weights, ratio)
