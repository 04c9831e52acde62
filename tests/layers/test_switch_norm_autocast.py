"""Under autocast the layer keeps the types that BatchNorm keeps in the same place."""

import copy
from contextlib import nullcontext

import pytest
import torch
from torch import nn

from sn_openmmlab.layers.switch_norm import SwitchNorm

BACKWARD = ['outside', 'inside']
DTYPES = [torch.float32, torch.bfloat16]


def _autocast(enabled=True):
    return torch.autocast('cpu', torch.bfloat16) if enabled else nullcontext()


def _types_and_values(module, x, forward_inside, backward):
    """Return types and values of the output, the loss's gradients and the running statistics."""
    module, x = copy.deepcopy(module), x.detach().requires_grad_()
    with _autocast(forward_inside):
        y = module(x)
        loss = y.float().square().sum()
        if backward == 'inside':
            loss.backward()
    if backward == 'outside':
        loss.backward()
    tensors = {'y': y, 'x': x.grad, 'weight': module.weight.grad, 'bias': module.bias.grad}
    tensors |= {name: getattr(module, name) for name in ('running_mean', 'running_var')}
    return tensors


@pytest.mark.parametrize('training', [True, False], ids=['train', 'eval'])
@pytest.mark.parametrize('backward', BACKWARD)
@pytest.mark.parametrize('forward_inside', [True, False], ids=['autocast', 'no_autocast'])
@pytest.mark.parametrize('dtype', DTYPES)
def test_types_are_those_of_batch_norm(dtype, forward_inside, backward, training):
    x = torch.randn(2, 4, 5, 5).to(dtype)
    place = (x, forward_inside, backward)

    found = _types_and_values(SwitchNorm(4).train(training), *place)

    expected = _types_and_values(nn.BatchNorm2d(4).train(training), *place)
    assert {name: t.dtype for name, t in found.items()} == {
        name: t.dtype for name, t in expected.items()
    }


@pytest.mark.parametrize('backward', BACKWARD)
@pytest.mark.parametrize('dtype', DTYPES)
def test_with_the_batch_scope_alone_so_are_the_values(dtype, backward):
    x = torch.randn(2, 4, 16, 16).to(dtype)
    layer, norm = SwitchNorm(4, scopes=('bn',)), nn.BatchNorm2d(4)

    found = _types_and_values(layer, x, True, backward)

    expected = _types_and_values(norm, x, True, backward)
    expected['running_var'] = 0.9 + (expected['running_var'] - 0.9) * (511 / 512)
    unit = torch.finfo(dtype).eps
    tight = {'rtol': 1e-4, 'atol': 1e-4}
    for name in found:
        # The two may round a bfloat16 output differently, and its gradient adds up 512 of them.
        loose = {'rtol': unit, 'atol': unit * 5} if dtype == torch.bfloat16 else tight
        torch.testing.assert_close(
            found[name], expected[name], **loose, msg=lambda m, n=name: n + m
        )


@pytest.mark.parametrize('backward', BACKWARD)
@pytest.mark.parametrize('dtype', DTYPES)
def test_the_values_are_those_without_autocast(dtype, backward, randomized):
    layer = randomized(SwitchNorm(4))
    x = torch.randn(2, 4, 16, 16).to(dtype)

    found = _types_and_values(layer, x, True, backward)

    expected = _types_and_values(layer, x, False, 'outside')
    assert all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize('create_graph', [False, True])
def test_a_gradient_penalty_under_autocast(create_graph, randomized):
    # With create_graph the backward pass runs the plain expression, where autocast would cast.
    layer = randomized(SwitchNorm(4))
    x = torch.randn(2, 4, 5, 5, requires_grad=True)
    expected = torch.autograd.grad(layer(x).square().sum(), x)[0]

    with _autocast():
        y = layer(x)
        found = torch.autograd.grad(y.square().sum(), x, create_graph=create_graph)[0]

    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected)


def test_a_block_of_convolution_norm_and_inplace_relu_trains(randomized):
    block = nn.Sequential(nn.Conv2d(3, 4, 3), randomized(SwitchNorm(4)), nn.ReLU(inplace=True))

    with _autocast():
        y = block(torch.randn(2, 3, 8, 8))
        y.float().sum().backward()

    assert y.dtype == torch.bfloat16
    assert all(
        p.grad.dtype == torch.float32 and p.grad.isfinite().all() for p in block.parameters()
    )
