"""The weights of BatchNorm networks become those of SN networks without a model."""

import re
from collections.abc import Callable

import pytest
import torch

from sn_openmmlab.checkpoints.plans.batch_norm import plan_batch_norm
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.switch_norm import SwitchNorm


@pytest.mark.parametrize('prefix', ['', 'module.', 'backbone.', 'module.backbone.'])
def test_weights_get_the_names_of_the_toolboxes(
    prefix: str, bn_weights: dict, build_net: Callable
) -> None:
    nested = {prefix + name: value for name, value in bn_weights.items()}
    if 'backbone' in prefix:
        nested['module.head.fc.weight'] = torch.ones(3, 4)
    plan = plan_batch_norm(nested, 0.5)
    plan.check()
    state = plan.convert()

    model = build_net(SwitchNorm, 'sn')
    model.load_state_dict(state)
    assert torch.equal(model['layer']['sn'].bias, bn_weights['layer.bn.bias'])
    for layer in (model['sn1'], model['layer']['sn'], model['layer']['convs'][0]):
        assert layer.importance_ratios()[1].tolist() == pytest.approx([0.25, 0.25, 0.5])
    assert plan.pairs[f'{prefix}bn1.weight'] == 'sn1.weight'
    assert plan.dropped == (['module.head.fc.weight'] if 'backbone' in prefix else [])
    nested[f'{prefix}bn1.running_var'].zero_()
    assert state['sn1.running_var'].count_nonzero() == 4


def test_part_of_a_model_has_its_controls_there(bn_weights: dict) -> None:
    state = plan_batch_norm(bn_weights, 1).under('backbone.').convert()
    assert {name for name in state if not name.startswith('backbone.')} == set()
    assert state['backbone.sn1.mean_weight'].softmax(0).tolist() == [0, 0, 1]


@pytest.mark.parametrize('ratio', [0, 2, 'much'])
def test_impossible_ratio_is_one_sentence(ratio: object, bn_weights: dict) -> None:
    with pytest.raises(UsageError, match='batch_ratio'):
        plan_batch_norm(bn_weights, ratio)


@pytest.mark.parametrize(
    ('prefix', 'words'),
    [
        ('module.', 'it has both conv1.weight and module.conv1.weight, which are the same weight'),
        ('backbone.', 'it has backbone.conv1.weight also without backbone.'),
    ],
)
def test_weight_that_is_there_twice_is_named(prefix: str, words: str, bn_weights: dict) -> None:
    twice = {**bn_weights, f'{prefix}conv1.weight': bn_weights['conv1.weight'] * 0}
    with pytest.raises(UsageError, match=words):
        plan_batch_norm(twice)


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('conv1.weight', float('nan')),
        ('layer.bn.bias', float('inf')),
        ('bn1.running_var', -1),
        ('layer.bn.running_mean', -float('inf')),
    ],
)
def test_broken_values_are_named(name: str, value: float, bn_weights: dict) -> None:
    bn_weights[name].view(-1)[0] = value
    with pytest.raises(UsageError, match=f'NaN, infinity or a negative variance: {name}'):
        plan_batch_norm(bn_weights).check()


@pytest.mark.parametrize(
    ('name', 'words'),
    [('bn1.running_var', 'lacks sn1.running_var'), ('bn1.bias', 'lacks sn1.bias')],
)
def test_missing_part_of_a_batch_norm_is_named(name: str, words: str, bn_weights: dict) -> None:
    del bn_weights[name]
    with pytest.raises(UsageError, match=re.escape(words)):
        plan_batch_norm(bn_weights).check()


def test_parts_of_different_lengths_are_named(bn_weights: dict) -> None:
    bn_weights['bn1.weight'] = torch.ones(5)
    with pytest.raises(UsageError, match=r'has the shape \(5,\), not \(4,\), of bn1\.weight'):
        plan_batch_norm(bn_weights).check()


def test_huge_tensor_that_repeats_one_number_is_refused(bn_weights: dict) -> None:
    bn_weights['conv1.weight'] = torch.ones(1).expand(1 << 20, 1 << 20)
    with pytest.raises(UsageError, match=r'not dense floating-point tensors: conv1\.weight'):
        plan_batch_norm(bn_weights).check()


def test_network_without_batch_norm_is_refused() -> None:
    with pytest.raises(UsageError, match=r'no network with BatchNorm, but fc\.weight\.$'):
        plan_batch_norm({'fc.weight': torch.ones(2, 2)})
