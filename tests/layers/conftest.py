"""What the tests of the layer share: Eq. 2 to 5 written out plainly, and small helpers."""

import pytest
import torch


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture(scope='session')
def paper():
    """A function (layer, x) -> y: the paper's formulas on the layer's parameters, in float64."""
    return _paper


@pytest.fixture(scope='session')
def randomized():
    """A function that gives a layer random parameters and running statistics, and returns it."""
    return _randomized


@pytest.fixture(scope='session')
def outcome():
    """A function (layer, x, grad) -> the output, and the gradients by name, of a layer."""
    return _outcome


def _randomized(layer):
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape))
        if layer.running_mean is not None:
            layer.running_mean.copy_(torch.randn(layer.num_features))
            layer.running_var.copy_(torch.rand(layer.num_features) + 0.5)
    return layer


def _outcome(layer, x, grad, forward=None):
    """With ``forward``, of ``forward(layer, x)`` in place of ``layer(x)``."""
    x = x.detach().requires_grad_()
    names, parameters = zip(*layer.named_parameters(), strict=True)
    y = layer(x) if forward is None else forward(layer, x)
    grads = torch.autograd.grad(y, [x, *parameters], grad)
    return {'y': y.detach(), **dict(zip(['x', *names], grads, strict=True))}


def _paper(layer, x):
    assert x.dtype == layer.mean_weight.dtype == torch.float64
    h = x.reshape(*x.shape[:2], -1)
    mean_ratios = layer.mean_weight.exp() / layer.mean_weight.exp().sum()
    var_ratios = layer.var_weight.exp() / layer.var_weight.exp().sum()
    rows = []
    for n in range(h.shape[0]):
        for c in range(h.shape[1]):
            moments = [_moments(layer, h, scope, n, c) for scope in layer.scopes]
            mean = sum(w * mu for w, (mu, _) in zip(mean_ratios, moments, strict=True))
            var = sum(w * v for w, (_, v) in zip(var_ratios, moments, strict=True))
            gamma = 1 if layer.weight is None else layer.weight[c]
            beta = 0 if layer.bias is None else layer.bias[c]
            rows.append(gamma * (h[n, c] - mean) / torch.sqrt(var + layer.eps) + beta)
    return torch.stack(rows).reshape(x.shape)


def _moments(layer, h, scope, n, c):
    if scope == 'bn' and layer.track_running_stats and not layer.training:
        return layer.running_mean[c], layer.running_var[c]
    pixels = _pixel_set(layer, h, scope, n, c)
    if layer.correction:
        return _authors_moments(pixels.reshape(-1, h.shape[-1]))
    mean = pixels.mean()
    return mean, (pixels - mean).square().mean()


def _pixel_set(layer, h, scope, n, c):
    """I_k of Eq. 2."""
    if scope == 'gn':
        size = layer.num_features // layer.num_groups
        first = c // size * size
        return h[n, first : first + size]
    return {'in': h[n, c], 'ln': h[n], 'bn': h[:, c]}[scope]


def _authors_moments(instances):
    """Eq. 4 as the authors' code has it: the instance variance divides by one less."""
    positions = instances.shape[1]
    mean_in = instances.mean(1)
    squares = (instances - mean_in[:, None]).square().sum(1)
    var_in = squares / (positions - 1) if positions > 1 else squares
    mean = mean_in.mean()
    return mean, (var_in + mean_in.square()).mean() - mean.square()
