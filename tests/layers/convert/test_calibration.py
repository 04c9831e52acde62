"""Converted layers fitted to the BatchNorms they were, against torch's batch_norm."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sn_openmmlab import SwitchNorm, calibrate_switch_norm, convert_batch_norm
from sn_openmmlab.layers.norm_act import SwitchNormAct


def network() -> nn.Sequential:
    """Return two convolutions with BatchNorms whose channels differ by orders of magnitude."""
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 6, 3)]
    layers.append(nn.BatchNorm2d(6))
    for layer in layers:
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.weight)
            nn.init.normal_(layer.bias)
            nn.init.normal_(layer.running_mean)
            layer.running_var.copy_(torch.logspace(-3, 1, layer.num_features))
    return nn.Sequential(*layers).eval()


@pytest.fixture
def images() -> Tensor:
    return torch.randn(12, 3, 16, 16, generator=torch.Generator().manual_seed(1))


def moments(x: Tensor) -> Tensor:
    dims = [0, *range(2, x.dim())]
    return torch.stack([x.mean(dims), x.std(dims, correction=0)])


def as_batch_norm(bn: nn.BatchNorm2d, x: Tensor) -> Tensor:
    return F.batch_norm(x, bn.running_mean, bn.running_var, bn.weight, bn.bias, eps=bn.eps)


@pytest.mark.parametrize('ratio', [0.3, 0.9, 1])
def test_each_layer_gives_the_moments_of_its_batch_norm(images: Tensor, ratio: float) -> None:
    bn = network()
    sn = calibrate_switch_norm(convert_batch_norm(copy.deepcopy(bn), ratio), images)
    x = images
    with torch.no_grad():
        for before, after in zip(bn, sn, strict=True):
            y = after(x)
            if isinstance(before, nn.BatchNorm2d):
                torch.testing.assert_close(moments(y), moments(as_batch_norm(before, x)))
                assert ratio == 1 or not torch.allclose(before.weight, after.weight, rtol=0.01)
            x = y


def test_a_ratio_of_one_needs_no_fitting(images: Tensor) -> None:
    bn, images = network().double(), images.double()
    sn = calibrate_switch_norm(convert_batch_norm(copy.deepcopy(bn), 1), images)
    torch.testing.assert_close(sn(images), bn(images))


def test_a_fitted_network_is_nearer_to_the_one_with_batch_norm(images: Tensor) -> None:
    bn = network()
    plain = convert_batch_norm(copy.deepcopy(bn), 0.6)
    fitted = calibrate_switch_norm(copy.deepcopy(plain), images)
    new = torch.randn(12, 3, 16, 16, generator=torch.Generator().manual_seed(2))
    wanted = bn(new)
    assert (fitted(new) - wanted).norm() < 0.5 * (plain(new) - wanted).norm()


def test_only_weight_and_bias_change(images: Tensor) -> None:
    sn = convert_batch_norm(network(), 0.6).train()
    sn[1].eval()
    before = copy.deepcopy(sn.state_dict())
    assert calibrate_switch_norm(sn, images) is sn
    changed = {name for name, value in sn.state_dict().items() if not value.equal(before[name])}
    assert changed == {'1.weight', '1.bias', '4.weight', '4.bias'}
    assert sn.training and sn[4].training and not sn[1].training
    assert not sn[1]._forward_pre_hooks and all(p.grad is None for p in sn.parameters())


def test_channels_and_layers_that_cannot_be_fitted_stay(images: Tensor) -> None:
    sn = convert_batch_norm(network(), 0.6)
    sn[0].weight.data[2] = 0
    sn[0].bias.data[2] = 0.5
    with torch.no_grad():
        sn[1].mean_weight.copy_(torch.tensor([9.0, 0, 0]))
    constant = sn[1].weight[2].item(), sn[1].bias[2].item()
    plain = nn.Sequential(sn[:2], SwitchNorm(8, affine=False), SwitchNorm(8, scopes=('in', 'ln')))
    calibrate_switch_norm(plain, images)
    assert (sn[1].weight[2].item(), sn[1].bias[2].item()) == constant
    assert torch.isfinite(sn[1].weight).all() and torch.isfinite(sn[1].bias).all()
    assert plain[2].weight.eq(1).all() and plain[2].bias.eq(0).all()


def test_the_activation_of_a_layer_is_not_fitted(images: Tensor) -> None:
    bn = network()[:2]
    sn = convert_batch_norm(copy.deepcopy(bn), 0.6)
    sn[1].__class__ = SwitchNormAct
    sn[1].add_module('act', nn.ReLU())
    calibrate_switch_norm(sn, images)
    sn[1].act = nn.Identity()
    torch.testing.assert_close(moments(sn(images)), moments(bn(images)))


def test_a_layer_that_is_called_twice_is_fitted_to_the_first_call(images: Tensor) -> None:
    shared = convert_batch_norm(network()[:2], 0.6)

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.shared = shared

        def forward(self, x: Tensor) -> Tensor:
            return self.shared(x) + self.shared(10 * x).sum()

    once = calibrate_switch_norm(copy.deepcopy(shared), images)
    calibrate_switch_norm(Twice(), images)
    torch.testing.assert_close(shared[1].weight, once[1].weight)


def test_modes_and_hooks_are_restored_when_the_network_fails() -> None:
    sn = convert_batch_norm(network(), 0.6).train()
    with pytest.raises(RuntimeError):
        calibrate_switch_norm(sn, torch.randn(1, 5, 8, 8))
    assert all(module.training for module in sn.modules())
    assert not any(module._forward_pre_hooks for module in sn.modules())


def test_an_empty_input_fits_nothing() -> None:
    sn = convert_batch_norm(network(), 0.6)
    before = copy.deepcopy(sn.state_dict())
    calibrate_switch_norm(sn, torch.randn(0, 3, 16, 16))
    assert all(value.equal(before[name]) for name, value in sn.state_dict().items())
