"""A norm layer becomes another one and stays the same object."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from sn_openmmlab.layers.convert.replace import (
    channels_of,
    reason_to_keep,
    replace_by,
    replace_by_switch_norm,
)
from sn_openmmlab.layers.norm_act import SwitchNormAct
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm


class OwnGroupNorm(nn.GroupNorm):
    """Computes something else."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return -super().forward(x)


@pytest.mark.parametrize(
    'layer', [nn.BatchNorm1d(4), nn.BatchNorm3d(4), nn.SyncBatchNorm(4), nn.GroupNorm(2, 4)]
)
def test_batch_and_group_norms_can_be_replaced(layer: nn.Module) -> None:
    assert reason_to_keep(layer) is None
    assert channels_of(layer) == 4


@pytest.mark.parametrize(
    ('layer', 'reason'),
    [
        (nn.LayerNorm(4), 'only BN, SyncBN, GN and SN are replaced'),
        (nn.InstanceNorm2d(4), 'only BN, SyncBN, GN and SN are replaced'),
        (OwnGroupNorm(2, 4), 'a forward of its own'),
        (parametrizations.weight_norm(nn.GroupNorm(2, 4), dim=None), 'a parametrization'),
    ],
)
def test_all_others_stay_with_a_reason(layer: nn.Module, reason: str) -> None:
    assert reason_to_keep(layer) == reason


def test_norms_with_an_activation_become_sn_only() -> None:
    layer = SwitchNormAct(4)
    assert reason_to_keep(layer) is None
    assert reason_to_keep(layer, switchable=False) == 'an activation of its own'


def test_a_layer_stays_the_same_object_wherever_it_is_used() -> None:
    shared = nn.GroupNorm(2, 4)
    model = nn.ModuleDict(dict(a=nn.Sequential(shared), b=nn.Sequential(shared)))
    held = [shared]
    with torch.no_grad():
        shared.weight.uniform_()
    weight = shared.weight.clone()
    replace_by_switch_norm(shared, dict(scopes=('gn', 'bn'), num_groups=2), synced=False)
    assert model['a'][0] is model['b'][0] is held[0]
    assert type(shared) is SwitchNorm
    assert shared.weight.equal(weight)
    x = torch.randn(2, 4, 3, 3)
    new = SwitchNorm(4, scopes=('gn', 'bn'), num_groups=2)
    torch.testing.assert_close(shared(x), new(x) * weight[:, None, None])


@pytest.mark.parametrize('layer', [nn.BatchNorm2d(4), nn.GroupNorm(2, 4)])
def test_groups_of_channels_may_have_ratios_of_their_own(layer: nn.Module) -> None:
    replace_by_switch_norm(layer, dict(num_ratio_groups=2), synced=False)
    assert repr(layer) == repr(SwitchNorm(4, num_ratio_groups=2))
    assert layer.mean_weight.equal(torch.ones(2, 3))


@pytest.mark.parametrize('synced', [False, True])
@pytest.mark.parametrize(
    'layer', [nn.BatchNorm2d(4), nn.SyncBatchNorm(4), nn.GroupNorm(2, 4), SwitchNorm(4)]
)
def test_what_both_have_is_taken_over(layer: nn.Module, synced: bool) -> None:
    layer = copy.deepcopy(layer).double().eval().requires_grad_(False)
    with torch.no_grad():
        for value in (layer.weight, layer.bias):
            value.uniform_()
    before = copy.deepcopy(layer.state_dict())
    layer.register_forward_hook(lambda *_: torch.zeros(1))
    replace_by_switch_norm(layer, {}, synced)
    assert type(layer) is (SyncSwitchNorm if synced else SwitchNorm)
    assert all(layer.state_dict()[name].equal(value) for name, value in before.items())
    assert not layer.training
    assert not any(p.requires_grad for p in layer.parameters())
    assert {p.dtype for p in layer.parameters()} == {torch.float64}
    assert layer(torch.ones(1, 4, 2, 2, dtype=torch.float64)).equal(torch.zeros(1))


def test_running_statistics_stay_from_batch_norm_to_batch_norm() -> None:
    layer = nn.SyncBatchNorm(4)
    layer.running_mean.uniform_()
    mean = layer.running_mean.clone()
    replace_by(layer, nn.BatchNorm2d)
    assert type(layer) is nn.BatchNorm2d
    assert layer.running_mean.equal(mean)
    replace_by(layer, lambda channels: nn.GroupNorm(2, channels))
    assert layer.state_dict().keys() == {'weight', 'bias'}


def test_no_affine_map_is_added() -> None:
    layer = nn.GroupNorm(2, 4, eps=0.5, affine=False)
    replace_by_switch_norm(layer, dict(scopes=('ln',)), synced=False)
    assert (layer.weight, layer.bias, layer.running_mean) == (None, None, None)
    assert layer.eps == 0.5
