"""At one-hot ratios the layer is torch's own InstanceNorm, GroupNorm, LayerNorm or BatchNorm."""

import pytest
import torch
from torch.nn import functional as F

from sn_openmmlab.layers.switch_norm import SwitchNorm

SHAPES = [(3, 6), (3, 6, 5), (3, 6, 4, 2), (3, 6, 2, 3, 2)]
MAPS = SHAPES[1:]  # torch's InstanceNorm takes no single pixels
SCOPES = ('in', 'gn', 'ln', 'bn')
EPS, GROUPS = 1e-3, 2


def _one_hot(scope, randomized):
    """Return a layer of all scopes whose ratios are exactly 1 for `scope` and 0 elsewhere."""
    layer = SwitchNorm(6, eps=EPS, scopes=SCOPES, num_groups=GROUPS, dtype=torch.float64)
    randomized(layer)
    with torch.no_grad():
        for control in (layer.mean_weight, layer.var_weight):
            control.fill_(-1e4)[SCOPES.index(scope)] = 1e4
    return layer


def _channels(table, x):
    return table.reshape(1, -1, *[1] * (x.dim() - 2))


def _instance_norm(layer, x):
    return F.instance_norm(x, weight=layer.weight, bias=layer.bias, eps=EPS)


def _group_norm(layer, x):
    return F.group_norm(x, GROUPS, layer.weight, layer.bias, EPS)


def _layer_norm(layer, x):
    # torch's own has γ and β per element; the paper's are per channel.
    normalized = F.layer_norm(x, x.shape[1:], eps=EPS)
    return normalized * _channels(layer.weight, x) + _channels(layer.bias, x)


def _batch_norm(layer, x):
    running = layer.running_mean.clone(), layer.running_var.clone()
    return F.batch_norm(x, *running, layer.weight, layer.bias, layer.training, eps=EPS)


CASES = [
    *[('in', _instance_norm, shape) for shape in MAPS],
    *[('gn', _group_norm, shape) for shape in SHAPES],
    *[('ln', _layer_norm, shape) for shape in SHAPES],
    *[('bn', _batch_norm, shape) for shape in SHAPES],
]


@pytest.mark.parametrize('training', [True, False])
@pytest.mark.parametrize(('scope', 'torchs', 'shape'), CASES)
def test_output_and_gradients_are_torchs(scope, torchs, shape, training, randomized, outcome):
    layer = _one_hot(scope, randomized).train(training)
    x = torch.randn(shape, dtype=torch.float64) * 3 + 1
    grad = torch.randn_like(x)

    reference = outcome(layer, x, grad, lambda layer, x: torchs(layer, x) + _unused(layer))

    names = ('y', 'x', 'weight', 'bias')
    found = outcome(layer, x, grad)
    torch.testing.assert_close(
        {name: found[name] for name in names},
        {name: reference[name] for name in names},
        rtol=1e-9,
        atol=1e-9,
    )


def _unused(layer):
    """Return zero, so that autograd finds the control parameters, which torch's norms lack."""
    return 0 * (layer.mean_weight.sum() + layer.var_weight.sum())


@pytest.mark.parametrize('scope', ['in', 'ln', 'bn', 'gn'])
@pytest.mark.parametrize('shape', SHAPES)
def test_a_single_scope_needs_no_control(scope, shape, randomized):
    # The softmax of any single number is 1, and has no gradient.
    layer = SwitchNorm(6, scopes=(scope,), num_groups=GROUPS, dtype=torch.float64)
    randomized(layer)
    all_scopes = _one_hot(scope, randomized)
    all_scopes.eps = layer.eps
    all_scopes.load_state_dict(
        {name: layer.state_dict()[name] for name in ('weight', 'bias')}, strict=False
    )
    x = torch.randn(shape, dtype=torch.float64)

    y = layer(x)

    torch.testing.assert_close(y, all_scopes(x))
    y.square().sum().backward()
    assert layer.mean_weight.grad.item() == layer.var_weight.grad.item() == 0


def test_a_single_pixel_of_instance_norm_is_beta(randomized):
    layer = _one_hot('in', randomized)

    y = layer(torch.randn(3, 6, dtype=torch.float64))

    torch.testing.assert_close(y, layer.bias.expand(3, 6))
