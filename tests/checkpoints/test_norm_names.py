"""Norm layers are recognised by the names of their weights."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from sn_openmmlab.checkpoints.norm_names import (
    as_sn,
    batch_norm_of,
    batch_norms,
    has_batch_norm,
    renamed_norms,
)
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm


def test_batch_norms_are_the_layers_with_running_statistics_and_without_controls(
    bn_weights: dict,
) -> None:
    assert batch_norms(bn_weights) == ['bn1', 'layer.bn', 'layer.convs.0']
    assert batch_norms(nn.BatchNorm2d(4).state_dict()) == ['']
    assert batch_norms(SwitchNorm(4).state_dict()) == []


def test_only_batch_norm_without_sn_is_recognised(bn_weights: dict, build_net: Callable) -> None:
    assert has_batch_norm(bn_weights)
    assert not has_batch_norm(nn.GroupNorm(2, 4).state_dict())
    assert not has_batch_norm({'conv.weight': torch.ones(1)})
    assert not has_batch_norm(build_net(SwitchNorm, 'sn').state_dict())
    assert not has_batch_norm({**bn_weights, 'other.mean_weight': torch.ones(3)})


@pytest.mark.parametrize(
    ('name', 'norms', 'found'),
    [
        ('sn1', {'bn1'}, 'bn1'),
        ('layer.sn', {'layer.bn', 'bn'}, 'layer.bn'),
        ('bn1', {'bn1'}, 'bn1'),
        ('downsample.1', {'downsample.1'}, 'downsample.1'),
        ('', {''}, ''),
        ('sn1', {'bn2', 'a.bn1'}, None),
        ('sn.conv', {'bn.conv'}, None),
    ],
)
def test_batch_norm_in_the_place_of_an_sn_layer_is_found(
    name: str, norms: set[str], found: str | None
) -> None:
    for kind in (SwitchNorm, SyncSwitchNorm):
        assert batch_norm_of(name, kind(4), norms) == found


def test_sn_has_the_name_that_the_toolboxes_give_it() -> None:
    names = ('bn', 'a.bn12', 'bn.0', 'gn1')
    assert [as_sn(name) for name in names] == ['sn', 'a.sn12', 'bn.0', 'gn1']
    assert [as_sn(name, 'bn|gn') for name in ('bn1', 'a.gn', 'ln')] == ['sn1', 'a.sn', 'ln']


@pytest.mark.parametrize(
    ('theirs', 'ours'),
    [('sn1', 'bn1'), ('bn1', 'sn1'), ('conv.sn', 'conv.gn'), ('sn1', 'sn1'), ('a.1', 'a.1')],
)
def test_sn_gets_the_name_that_it_has_in_the_model(theirs: str, ours: str) -> None:
    model = nn.Module()
    model.add_module('x', SwitchNorm(4, scopes=('in', 'ln')))
    weights = model.state_dict()
    weights._metadata[theirs] = weights._metadata.pop('x')
    for name in list(weights):
        weights[name.replace('x', theirs, 1)] = weights.pop(name)
    weights['bn1.weight' if theirs != 'bn1' else 'other.weight'] = other = torch.ones(1)
    found = renamed_norms(weights, [ours, 'absent'])
    parts = ('weight', 'bias', 'mean_weight', 'var_weight')
    assert {f'{ours}.{part}' for part in parts} <= found.keys()
    assert found._metadata[ours]['scopes'] == ['in', 'ln']
    assert any(value is other for value in found.values()) or ours == 'bn1'
