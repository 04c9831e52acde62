"""What the tests of the op share."""

import pytest
import torch


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture(scope='session')
def outcomes():
    """Return a function (op, inputs, dy, **options) -> y, the observed moments, the gradients."""
    return _outcomes


@pytest.fixture(scope='session')
def make_inputs():
    """Return a function (shape, number of scopes, dtype) -> x, γ, β, λ, λ′, all of them leaves."""
    return _make_inputs


def _make_inputs(shape, scopes=4, dtype=torch.float64):
    shapes = (shape, shape[1:2], shape[1:2], (scopes,), (scopes,))
    return [torch.randn(s, dtype=torch.float64).to(dtype).requires_grad_() for s in shapes]


def _outcomes(op, inputs, dy, **options):
    leaves = [None if value is None else value.detach().requires_grad_() for value in inputs]
    y, observed = op(*leaves, **options)
    wanted = [leaf for leaf in leaves if leaf is not None]
    found = iter(torch.autograd.grad(y, wanted, dy))
    names = ('x', 'weight', 'bias', 'mean_weight', 'var_weight')
    grads = {
        name: next(found) for name, leaf in zip(names, leaves, strict=True) if leaf is not None
    }
    return {'y': y.detach(), **grads}, observed
