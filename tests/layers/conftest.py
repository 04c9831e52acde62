"""What the tests of the layers share."""

import pytest
import torch

from tests.reference import switch_norm_layer


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture(scope='session')
def paper():
    """Return a function (layer, x) -> y: the paper's formulas with the layer's parameters."""
    return switch_norm_layer


@pytest.fixture(scope='session')
def randomized():
    """Return a function that fills a layer with random parameters and running statistics."""
    return _randomized


@pytest.fixture(scope='session')
def outcome():
    """Return a function (layer, x, grad) -> the output and the gradients, by name."""
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
    """Return the outcome of `layer(x)`, or of `forward(layer, x)`."""
    x = x.detach().requires_grad_()
    names, parameters = zip(*layer.named_parameters(), strict=True)
    y = layer(x) if forward is None else forward(layer, x)
    grads = torch.autograd.grad(y, [x, *parameters], grad)
    return {'y': y.detach(), **dict(zip(['x', *names], grads, strict=True))}
