"""What the tests of the op share: Eq. 2 to 5 written out plainly, and ways to lay out a tensor."""

import pytest
import torch

from sn_openmmlab.ops.batch import BatchMoments


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture(scope='session')
def formula():
    """A function with the arguments and results of the op: the paper's formulas, in float64."""
    return _formula


@pytest.fixture(scope='session')
def mixed_moments():
    """A function -> the mixed mean and variance, and each scope's mean, (N, C, 1) each."""
    return _mixed_moments


@pytest.fixture(scope='session')
def outcomes():
    """A function (op, inputs, dy, **options) -> y, the observed moments and the gradients."""
    return _outcomes


@pytest.fixture(scope='session')
def layouts():
    """Functions by name that copy a tensor's values into another layout in memory."""
    return {
        'contiguous': torch.Tensor.contiguous,
        'channels_last': lambda x: x.movedim(1, -1).contiguous().movedim(-1, 1),
        'reversed': lambda x: (
            x.permute(*range(x.dim())[::-1]).contiguous().permute(*range(x.dim())[::-1])
        ),
        'samples_inside': lambda x: x.movedim(0, -1).contiguous().movedim(-1, 0),
        'last_two_swapped': lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2),
        'every_second': lambda x: torch.stack([x, x], -1).flatten(-2)[..., ::2],
        'every_second_channel': lambda x: torch.stack([x, x], 2).flatten(1, 2)[:, ::2],
        'part': lambda x: torch.nn.functional.pad(x, (1, 2, 3, 0))[..., 3:, 1 : x.shape[-1] + 1],
    }


@pytest.fixture(scope='session')
def make_inputs():
    """A function (shape, number of scopes, dtype) -> x, γ, β, λ, λ′, all of them leaves."""
    return _make_inputs


def _make_inputs(shape, scopes=4, dtype=torch.float64):
    shapes = (shape, shape[1:2], shape[1:2], (scopes,), (scopes,))
    return [torch.randn(s, dtype=torch.float64).to(dtype).requires_grad_() for s in shapes]


def _formula(x, weight, bias, mean_weight, var_weight, *, batch_moments=None, **options):
    h = x.flatten(2) if x.dim() > 2 else x.unsqueeze(-1)
    mean, var, _ = _mixed_moments(h, mean_weight, var_weight, options, batch_moments)
    gamma = 1 if weight is None else weight[:, None]
    beta = 0 if bias is None else bias[:, None]
    y = (gamma * (h - mean) / torch.sqrt(var + options['eps']) + beta).reshape(x.shape)
    if batch_moments is not None or 'bn' not in options['scopes']:
        return y, None
    moments = _scope_moments(h.detach(), 'bn', None, options['correction'])
    return y, BatchMoments(*(table[0, :, 0] for table in moments), x.shape[0])


def _mixed_moments(h, mean_weight, var_weight, options, batch_moments=None):
    moments = []
    for scope in options['scopes']:
        if scope == 'bn' and batch_moments is not None:
            moments.append(tuple(table[:, None] for table in batch_moments))
        else:
            moments.append(_scope_moments(h, scope, options['num_groups'], options['correction']))
    means, variances = zip(*moments, strict=True)
    ratios = [torch.softmax(control, 0) for control in (mean_weight, var_weight)]
    mean = sum(w * mu for w, mu in zip(ratios[0], means, strict=True))
    var = sum(w * v for w, v in zip(ratios[1], variances, strict=True))
    return mean, var, means


def _scope_moments(h, scope, num_groups, correction):
    """Eq. 2 over the pixels of I_k; a correction of 1 adds 1 / (HW - 1) of the instance variance.

    That follows from Eq. 4, in which the variance of a scope is linear in those of the instances.
    """
    samples, channels, positions = h.shape
    grouped = h.reshape(samples, num_groups, -1, positions) if scope == 'gn' else h
    dims = {'in': (-1,), 'gn': (-2, -1), 'ln': (-2, -1), 'bn': (0, -1)}[scope]
    mean = grouped.mean(dims, keepdim=True)
    var = (grouped - mean).square().mean(dims, keepdim=True)
    if correction and positions > 1:
        instances = (grouped - grouped.mean(-1, keepdim=True)).square().mean(-1, keepdim=True)
        var = var + instances.mean(dims, keepdim=True) / (positions - 1)
    shape = (samples, channels, 1)
    return tuple(table.expand(*grouped.shape[:-1], 1).reshape(shape) for table in (mean, var))


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
