"""Inputs without samples (a detector's image without RoIs) or without pixels."""

import pytest
import torch

from sn_openmmlab.layers.switch_norm import SwitchNorm

SHAPES = [
    *[(0, 4, *[3] * count) for count in range(4)],
    (2, 4, 0),
    (2, 4, 0, 3),
    (2, 4, 3, 0),
    (2, 4, 0, 0, 0),
    (0, 4, 0, 7),
]
SCOPES = [('in',), ('gn',), ('ln',), ('bn',), ('in', 'ln'), ('in', 'gn', 'ln', 'bn')]


def _layer(randomized, scopes, **options):
    return randomized(SwitchNorm(4, scopes=scopes, num_groups=2, **options))


@pytest.mark.parametrize('training', [True, False], ids=['train', 'eval'])
@pytest.mark.parametrize('scopes', SCOPES, ids='-'.join)
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_the_output_is_empty_and_every_gradient_zero(shape, scopes, training, randomized):
    layer = _layer(randomized, scopes).train(training)
    x = torch.randn(shape, requires_grad=True)

    y = layer(x)
    y.sum().backward()

    assert y.shape == x.shape and y.dtype == x.dtype
    assert x.grad.shape == x.shape
    for name, parameter in layer.named_parameters():
        assert torch.equal(parameter.grad, torch.zeros_like(parameter)), name


@pytest.mark.parametrize('momentum', [0.1, None])
@pytest.mark.parametrize('correction', [0, 1])
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_the_running_statistics_stay_untouched(shape, correction, momentum, randomized):
    layer = _layer(randomized, ('in', 'bn'), correction=correction, momentum=momentum)
    layer(torch.randn(2, 4, 3, 3))
    before = {name: value.clone() for name, value in layer.state_dict().items()}

    layer(torch.randn(shape))

    assert before['num_batches_tracked'] == 1
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize('training', [True, False], ids=['train', 'eval'])
def test_in_every_type(dtype, training, randomized):
    layer = _layer(randomized, ('in', 'ln', 'bn')).train(training)
    x = torch.randn(0, 4, 3, 3, dtype=dtype, requires_grad=True)

    y = layer(x)
    y.sum().backward()

    assert y.dtype == dtype and y.shape == x.shape
    assert all(parameter.grad.abs().max() == 0 for parameter in layer.parameters())


def test_training_goes_on_after_an_empty_batch(randomized, outcome, paper):
    layer = _layer(randomized, ('in', 'ln', 'bn'), dtype=torch.float64)
    x, grad = torch.randn(2, 2, 4, 3, 3, dtype=torch.float64)

    layer(x[:0]).sum().backward()

    torch.testing.assert_close(outcome(layer, x, grad), outcome(layer, x, grad, paper))
