"""The layer's gradients against the explicit ones of the paper's appendix H.

The appendix prints them for ratios that the means and variances share. With λ = λ′, its dL/dλ is
the sum of the layer's dL/dλ and dL/dλ′. Its terms in dL/dμ and in dL/dσ² are separate, so each
alone, with its own ratios, is the gradient of the layer.
"""

import pytest
import torch

from sn_openmmlab.layers.switch_norm import SwitchNorm
from tests.reference import scope_moments

SCOPES = ('in', 'ln', 'bn')
SHAPE = (3, 4, 2, 5)


def _ratios(control):
    return dict(zip(SCOPES, control.exp() / control.exp().sum(), strict=True))


def _column(table):
    return table[None, :, None, None]


def _by_control(ratios, grad, tables):
    """Return dL/dλ_k of appendix H, from the terms of either dL/dμ or dL/dσ²."""
    w = ratios
    total = {k: (grad * tables[k]).sum() for k in SCOPES}
    by_in = (
        w['in'] * (1 - w['in']) * total['in']
        - w['in'] * w['ln'] * total['ln']
        - w['in'] * w['bn'] * total['bn']
    )
    by_ln = (
        w['ln'] * (1 - w['ln']) * total['ln']
        - w['in'] * w['ln'] * total['in']
        - w['ln'] * w['bn'] * total['bn']
    )
    by_bn = (
        w['bn'] * (1 - w['bn']) * total['bn']
        - w['in'] * w['bn'] * total['in']
        - w['ln'] * w['bn'] * total['ln']
    )
    return torch.stack([by_in, by_ln, by_bn])


def _pooled(ratios, factors, grad):
    """Return Σ_k w_k · factor_k / |I_k| · (sum of `grad` over the instances of I_k)."""
    n, c, height, width = SHAPE
    hw = height * width
    grad = grad[..., None, None]
    return (
        ratios['in'] * factors['in'] / hw * grad
        + ratios['ln'] * factors['ln'] / (c * hw) * grad.sum(1, keepdim=True)
        + ratios['bn'] * factors['bn'] / (n * hw) * grad.sum(0, keepdim=True)
    )


def _appendix(layer, h, grad):
    """Return all gradients of appendix H; dL/dλ has its terms in dL/dμ, dL/dλ′ those in dL/dσ²."""
    w, w_var = _ratios(layer.mean_weight), _ratios(layer.var_weight)
    moments = {k: scope_moments(h, k) for k in SCOPES}
    means, variances = ({k: moments[k][i] for k in SCOPES} for i in (0, 1))
    mu = sum(w[k] * means[k] for k in SCOPES)
    sigma2_eps = sum(w_var[k] * variances[k] for k in SCOPES) + layer.eps
    h_tilde = (h - mu[..., None, None]) / sigma2_eps.sqrt()[..., None, None]

    by_h_tilde = grad * _column(layer.weight)
    by_sigma2 = -1 / (2 * sigma2_eps) * (by_h_tilde * h_tilde).sum((2, 3))
    by_mu = -1 / sigma2_eps.sqrt() * by_h_tilde.sum((2, 3))
    deviations = {k: 2 * (h - means[k][..., None, None]) for k in SCOPES}
    by_h = (
        by_h_tilde / sigma2_eps.sqrt()[..., None, None]
        + _pooled(w_var, deviations, by_sigma2)
        + _pooled(w, dict.fromkeys(SCOPES, 1), by_mu)
    )
    return {
        'x': by_h,
        'weight': (grad * h_tilde).sum((0, 2, 3)),
        'bias': grad.sum((0, 2, 3)),
        'mean_weight': _by_control(w, by_mu, means),
        'var_weight': _by_control(w_var, by_sigma2, variances),
    }


@pytest.fixture
def layer(randomized):
    return randomized(SwitchNorm(SHAPE[1], scopes=SCOPES, dtype=torch.float64))


@pytest.fixture
def h():
    return torch.randn(SHAPE, dtype=torch.float64) * 2 + 1


@pytest.fixture
def grad():
    return torch.randn(SHAPE, dtype=torch.float64)


def test_with_separate_ratios_for_means_and_variances(layer, h, grad, outcome):
    found = outcome(layer, h, grad)
    found.pop('y')

    torch.testing.assert_close(found, _detached(_appendix(layer, h, grad)))


def test_with_shared_ratios_as_printed(layer, h, grad):
    shared = layer.mean_weight.detach().clone().requires_grad_()
    state = {'mean_weight': shared, 'var_weight': shared}
    x = h.clone().requires_grad_()

    y = torch.func.functional_call(layer, state, (x,))
    by_shared, by_x = torch.autograd.grad(y, (shared, x), grad)

    with torch.no_grad():
        layer.var_weight.copy_(shared)
    printed = _detached(_appendix(layer, h, grad))
    torch.testing.assert_close(by_shared, printed['mean_weight'] + printed['var_weight'])
    torch.testing.assert_close(by_x, printed['x'])


def _detached(tables):
    return {name: table.detach() for name, table in tables.items()}
