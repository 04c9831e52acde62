"""Weights of BatchNorm networks become those of SN ones, for a model and without one."""

import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from sn_openmmlab.checkpoints.plans.batch_norm import fill_layers, has_batch_norm, plan_batch_norm
from sn_openmmlab.checkpoints.plans.sn_resnet import keep_classifier
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.switch_norm import SwitchNorm

Norm = Callable[[int], nn.Module]


def net(norm: Norm, name: str) -> nn.Module:
    """Norms of the toolboxes' names: after the norm, and of a place in a sequence."""
    return nn.ModuleDict(
        {
            'conv1': nn.Conv2d(3, 4, 1),
            f'{name}1': norm(4),
            'layer': nn.ModuleDict({name: norm(4), 'convs': nn.Sequential(norm(4))}),
        }
    )


def layers_of(model: nn.Module) -> dict[str, SwitchNorm]:
    return {name: m for name, m in model.named_modules() if isinstance(m, SwitchNorm)}


@pytest.fixture
def weights() -> dict[str, Tensor]:
    """Of that net with BatchNorm, each one another number."""
    state = net(nn.BatchNorm2d, 'bn').state_dict()
    return {name: torch.full_like(value, i) for i, (name, value) in enumerate(state.items())}


def test_model_is_filled_whatever_its_layers_are_called(weights: dict) -> None:
    for abbreviation in ('sn', 'bn'):
        model = net(SwitchNorm, abbreviation)
        filled = fill_layers(layers_of(model), weights, 0.5)
        assert filled.keys() == model.state_dict().keys()
        model.load_state_dict(filled)
        for theirs in ('bn1', 'layer.bn', 'layer.convs.0'):
            ours = theirs.replace('bn', abbreviation)
            for part in ('weight', 'bias', 'running_mean', 'running_var', 'num_batches_tracked'):
                assert torch.equal(filled[f'{ours}.{part}'], weights[f'{theirs}.{part}'])
        for layer in layers_of(model).values():
            for ratios in layer.importance_ratios():
                assert ratios.tolist() == pytest.approx([0.25, 0.25, 0.5])


def test_layer_that_is_the_whole_model_is_filled() -> None:
    layer, norm = SwitchNorm(4), nn.BatchNorm2d(4)
    norm.running_mean.fill_(3)
    layer.load_state_dict(fill_layers({'': layer}, norm.state_dict(), 1))
    assert layer.running_mean.tolist() == [3] * 4
    assert layer.importance_ratios()[0].tolist() == [0, 0, 1]


def test_layers_that_are_there_already_stay(weights: dict) -> None:
    model = net(SwitchNorm, 'sn')
    for part in ('mean_weight', 'var_weight'):
        weights[f'layer.convs.0.{part}'] = torch.tensor([3.0, 2.0, 1.0])
    filled = fill_layers(layers_of(model), weights, 0.5)
    assert filled['layer.convs.0.mean_weight'].tolist() == [3, 2, 1]
    assert filled['sn1.mean_weight'].tolist() != [3, 2, 1]


def test_layers_without_a_batch_norm_are_named(weights: dict) -> None:
    model = nn.ModuleDict({**net(SwitchNorm, 'sn'), 'sn2': SwitchNorm(4), 'extra': SwitchNorm(4)})
    with pytest.raises(UsageError, match=r'neither SN nor BatchNorm for these SN .*: sn2, extra.$'):
        fill_layers(layers_of(model), weights, 0.5)


def test_layer_without_the_batch_scope_is_named(weights: dict) -> None:
    model = net(lambda channels: SwitchNorm(channels, scopes=('in', 'ln')), 'sn')
    with pytest.raises(UsageError, match=r"sn1 mixes in, ln, which cannot .* of bn1: add 'bn' to"):
        fill_layers(layers_of(model), weights, 0.5)


@pytest.mark.parametrize('ratio', [0, 2, 'much'])
def test_impossible_ratio_is_one_sentence(ratio: object, weights: dict) -> None:
    with pytest.raises(UsageError, match='batch_ratio'):
        fill_layers(layers_of(net(SwitchNorm, 'sn')), weights, ratio)
    with pytest.raises(UsageError, match='batch_ratio'):
        plan_batch_norm(weights, ratio)


def test_only_batch_norm_alone_is_recognised(weights: dict) -> None:
    assert has_batch_norm(weights)
    assert not has_batch_norm(nn.GroupNorm(2, 4).state_dict())
    assert not has_batch_norm({'conv.weight': torch.ones(1)})
    assert not has_batch_norm(net(SwitchNorm, 'sn').state_dict())


@pytest.mark.parametrize(
    ('prefix', 'words'),
    [
        ('module.', 'it has both conv1.weight and module.conv1.weight, which are one weight'),
        ('backbone.', 'it has backbone.conv1.weight also without backbone.'),
    ],
)
def test_weight_that_is_there_twice_is_named(prefix: str, words: str, weights: dict) -> None:
    twice = {**weights, f'{prefix}conv1.weight': weights['conv1.weight'] * 0}
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
def test_broken_values_are_named(name: str, value: float, weights: dict) -> None:
    weights[name].view(-1)[0] = value
    with pytest.raises(UsageError, match=f'NaN, infinity or a negative variance: {name}'):
        plan_batch_norm(weights).check()


def test_classifier_of_any_network_is_kept(weights: dict) -> None:
    nested = {f'backbone.{name}': weight for name, weight in weights.items()}
    heads = {'head.fc.weight': torch.ones(10, 7), 'head.fc.bias': torch.ones(10)}
    plan = keep_classifier(plan_batch_norm({**nested, **heads}))
    plan.check()
    assert plan.convert()['head.fc.weight'].shape == (10, 7)
    other = {name.replace('fc', 'retina_cls'): weight for name, weight in heads.items()}
    with pytest.raises(UsageError, match='has no classifier to keep'):
        keep_classifier(plan_batch_norm({**nested, **other}))


@pytest.mark.parametrize('prefix', ['', 'module.', 'backbone.', 'module.backbone.'])
def test_without_a_model_the_toolboxes_names_come_out(prefix: str, weights: dict) -> None:
    nested = {prefix + name: value for name, value in weights.items()}
    if 'backbone' in prefix:
        nested['module.head.fc.weight'] = torch.ones(3, 4)
    plan = plan_batch_norm(nested, 0.5)
    plan.check()
    state = plan.convert()

    model = net(SwitchNorm, 'sn')
    model.load_state_dict(state)
    assert torch.equal(model['layer']['sn'].bias, weights['layer.bn.bias'])
    for layer in layers_of(model).values():
        assert layer.importance_ratios()[1].tolist() == pytest.approx([0.25, 0.25, 0.5])
    assert plan.pairs[f'{prefix}bn1.weight'] == 'sn1.weight'
    assert plan.dropped == (['module.head.fc.weight'] if 'backbone' in prefix else [])
    nested[f'{prefix}bn1.running_var'].zero_()
    assert state['sn1.running_var'].count_nonzero() == 4


@pytest.mark.parametrize(
    ('name', 'words'),
    [('bn1.running_var', 'lacks sn1.running_var'), ('bn1.bias', 'lacks sn1.bias')],
)
def test_batch_norm_that_lacks_a_part_is_named(name: str, words: str, weights: dict) -> None:
    del weights[name]
    with pytest.raises(UsageError, match=re.escape(words)):
        plan_batch_norm(weights).check()


def test_batch_norm_that_does_not_fit_together_is_named(weights: dict) -> None:
    weights['bn1.weight'] = torch.ones(5)
    with pytest.raises(UsageError, match=r'has the shape \(5,\), not \(4,\), of bn1\.weight'):
        plan_batch_norm(weights).check()


def test_huge_tensor_of_one_number_is_refused(weights: dict) -> None:
    weights['conv1.weight'] = torch.ones(1).expand(1 << 20, 1 << 20)
    with pytest.raises(UsageError, match=r'not dense tensors of floating point: conv1\.weight'):
        plan_batch_norm(weights).check()


def test_network_without_batch_norm_is_refused() -> None:
    with pytest.raises(UsageError, match=r'no network with BatchNorm, but fc\.weight\.$'):
        plan_batch_norm({'fc.weight': torch.ones(2, 2)})


def test_part_of_a_model_has_its_controls_there(weights: dict) -> None:
    state = plan_batch_norm(weights, 1).under('backbone.').convert()
    assert {name for name in state if not name.startswith('backbone.')} == set()
    assert state['backbone.sn1.mean_weight'].softmax(0).tolist() == [0, 0, 1]
