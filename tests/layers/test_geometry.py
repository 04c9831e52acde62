"""Remark 1 of the paper: what IN, LN, BN and SN do to filters before them, on white patches.

On patches of zero mean and identity covariance a filter's response w·x has the mean 0 and the
variance ‖w‖², and the remark's form of IN and BN is exact. Its form of LN divides by the sum of all
‖w_j‖; by the definition of LN (Eq. 2) it is the root of their mean square.
"""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from sn_openmmlab.layers.switch_norm import SwitchNorm

SAMPLES, CHANNELS, SIZE = 3, 6, 5
EPS = 1e-14


@pytest.fixture
def patches() -> Tensor:
    """Return patches, (N, size, positions), that are white in each sample."""
    torch.manual_seed(0)
    raw = torch.randn(SAMPLES, SIZE, 40, dtype=torch.float64)
    raw = raw - raw.mean(2, keepdim=True)
    values, vectors = torch.linalg.eigh(raw @ raw.mT / 40)
    return vectors @ (vectors.mT @ raw / values.sqrt()[..., None])


@pytest.fixture
def filters() -> Tensor:
    torch.manual_seed(1)
    return torch.randn(CHANNELS, SIZE, dtype=torch.float64) * torch.arange(1.0, 7.0)[:, None]


@pytest.fixture
def affine() -> tuple[Tensor, Tensor]:
    """Return γ and β."""
    torch.manual_seed(2)
    return torch.rand(CHANNELS, dtype=torch.float64) + 0.5, torch.randn(CHANNELS).double()


def layer_of(scopes: tuple[str, ...], affine: tuple[Tensor, Tensor]) -> SwitchNorm:
    layer = SwitchNorm(CHANNELS, eps=EPS, scopes=scopes, dtype=torch.float64)
    layer.weight.data, layer.bias.data = affine
    return layer


def over(divisor: Tensor, filters: Tensor, patches: Tensor, affine: tuple[Tensor, Tensor]):
    """Return γ w·x / divisor + β."""
    weight, bias = (values[:, None] for values in affine)
    return weight * (filters @ patches) / divisor.reshape(-1, 1) + bias


def root_mean_square(norms: Tensor) -> Tensor:
    return norms.square().mean().sqrt()


def test_in_and_bn_are_weight_normalization(patches, filters, affine) -> None:
    h = filters @ patches
    expected = over(filters.norm(dim=1), filters, patches, affine)
    for scope in ('in', 'bn'):
        torch.testing.assert_close(layer_of((scope,), affine)(h), expected)
    torch.testing.assert_close(
        F.instance_norm(h, weight=affine[0], bias=affine[1], eps=EPS), expected
    )
    batch_norm = F.batch_norm(h, None, None, *affine, training=True, eps=EPS)
    torch.testing.assert_close(batch_norm, expected)


def test_ln_divides_all_filters_by_the_root_of_their_mean_square(patches, filters, affine) -> None:
    h = filters @ patches
    expected = over(root_mean_square(filters.norm(dim=1)), filters, patches, affine)
    torch.testing.assert_close(layer_of(('ln',), affine)(h), expected)
    weight, bias = (values[:, None] for values in affine)
    torch.testing.assert_close(F.layer_norm(h, h.shape[1:], eps=EPS) * weight + bias, expected)


def test_the_remarks_ln_is_that_up_to_one_factor(patches, filters, affine) -> None:
    """The factor is one for all filters, so γ can take it up; it lies between √C and C."""
    norms = filters.norm(dim=1)
    remark = over(norms.sum(), filters, patches, affine) - affine[1][:, None]
    ours = layer_of(('ln',), affine)(filters @ patches) - affine[1][:, None]
    factor = (norms.sum() / root_mean_square(norms)).item()
    torch.testing.assert_close(ours, factor * remark)
    assert math.sqrt(CHANNELS) < factor < CHANNELS
    # It is C for filters of equal length.
    equal = F.normalize(filters, dim=1)
    remark = over(torch.tensor(CHANNELS), equal, patches, affine) - affine[1][:, None]
    ours = layer_of(('ln',), affine)(equal @ patches) - affine[1][:, None]
    torch.testing.assert_close(ours, CHANNELS * remark)


def test_ln_makes_filters_longer_than_in_does(patches, filters, affine) -> None:
    """The figure's LN, longer than v: filters above the root of the mean square, and only those."""
    norms, h = filters.norm(dim=1), filters @ patches
    plain = (torch.ones(CHANNELS).double(), torch.zeros(CHANNELS).double())
    ln, instance = (layer_of((scope,), plain)(h).std(-1) for scope in ('ln', 'in'))
    longer = norms > root_mean_square(norms)
    assert 0 < longer.sum() < CHANNELS
    assert ((ln > instance) == longer).all()
    # By the remark's own form no filter would be longer.
    assert (norms / norms.sum() < 1).all()


@pytest.mark.parametrize('ratios', [(1, 0, 0), (0.5, 0.2, 0.3), (0.1, 0.8, 0.1), (0, 1, 0)])
def test_sn_divides_by_a_mix_of_variances(patches, filters, affine, ratios) -> None:
    layer = layer_of(('in', 'ln', 'bn'), affine)
    layer.var_weight.data = torch.tensor(ratios, dtype=torch.float64).clamp(1e-300).log()
    # All means are zero, so their ratios do not matter.
    layer.mean_weight.data.normal_()
    norms = filters.norm(dim=1)
    divisor = ((1 - ratios[1]) * norms**2 + ratios[1] * norms.square().mean()).sqrt()
    y = layer(filters @ patches)
    torch.testing.assert_close(y, over(divisor, filters, patches, affine))
    remark = over(norms + ratios[1] * (norms.sum() - norms), filters, patches, affine)
    assert torch.allclose(y, remark) == (ratios[1] == 0)


def test_the_remarks_sum_of_outputs_is_not_its_last_form(filters) -> None:
    """Σ w_k ĥ_k is larger than the remark's ĥ_sn between the ends, by convexity of 1/x."""
    norms = filters.norm(dim=1)
    for share in (0, 0.25, 0.5, 1):
        outputs = (1 - share) / norms + share / norms.sum()
        last = 1 / (norms + share * (norms.sum() - norms))
        assert torch.allclose(outputs, last) == (share in (0, 1))
        assert (outputs >= last - 1e-12).all()


def test_bn_and_in_are_alike_only_if_each_sample_is_white(patches, filters, affine) -> None:
    # The same values as other samples: white over the batch, and no longer in each sample.
    mixed = patches.transpose(0, 1).reshape(SIZE, 20, -1).transpose(0, 1)
    expected = over(filters.norm(dim=1), filters, mixed, affine)
    torch.testing.assert_close(layer_of(('bn',), affine)(filters @ mixed), expected)
    assert not torch.allclose(layer_of(('in',), affine)(filters @ mixed), expected, rtol=0.1)


@pytest.mark.parametrize('batch', [2, 3, 8, 64])
def test_gamma_of_bn_is_below_v(batch: int) -> None:
    """Fit y = h by γ BN(h) over many batches: γ is the expected deviation of a batch, below 1.

    The paper's γ ≤ v follows from the noise of the batch statistics. For M normal values the
    expected deviation is √(2/M) Γ(M/2) / Γ((M - 1)/2). The best v of WN is 1 here.
    """
    torch.manual_seed(0)
    batches = 20_000
    h = torch.randn(batch, batches, dtype=torch.float64)
    # Each channel is a batch of its own.
    outputs = SwitchNorm(batches, eps=EPS, scopes=('bn',), dtype=torch.float64)(h)
    gamma = (outputs * h).sum() / outputs.square().sum()
    log = math.lgamma(batch / 2) - math.lgamma((batch - 1) / 2)
    expected = math.sqrt(2 / batch) * math.exp(log)
    # Five standard errors of the mean over the batches.
    assert gamma.item() == pytest.approx(expected, abs=5 / math.sqrt(2 * batch * batches))
    assert gamma < 1
