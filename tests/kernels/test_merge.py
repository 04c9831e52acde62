"""Moments merged from parts of different sizes against those of the whole."""

import pytest
import torch

from sn_openmmlab.kernels.merge import merge_moments


def _parts(x, sizes):
    parts = x.split(sizes)
    means = torch.stack([part.mean(0) for part in parts])
    variances = torch.stack([part.var(0, correction=0) for part in parts])
    shares = x.new_tensor(sizes).unsqueeze(1) / len(x)
    return means, variances, shares


@pytest.mark.parametrize('sizes', [(7,), (3, 4), (1, 5, 1)], ids=str)
def test_the_moments_are_those_of_the_whole(sizes):
    x = torch.randn(7, 4, dtype=torch.float64) * 3 + 2

    mean, var = merge_moments(*_parts(x, sizes))

    torch.testing.assert_close(mean, x.mean(0))
    torch.testing.assert_close(var, x.var(0, correction=0))


@pytest.mark.parametrize('value', [0.1, 12345.67, -6e4])
def test_equal_means_are_their_own_mean_and_add_no_variance_in_float32(value):
    # In float32 these shares add up to 1 only nearly.
    shares = torch.tensor([[0.3], [0.6], [0.1]]) * (1 + 2.0**-22)

    mean, var = merge_moments(torch.full((3, 2), value), torch.zeros(3, 2), shares)

    assert torch.equal(mean, torch.full((2,), value))
    assert torch.equal(var, torch.zeros(2))


def test_a_part_without_a_share_has_no_weight():
    x = torch.randn(5, 4, dtype=torch.float64)
    means = torch.stack([torch.full((4,), 99.0), x.mean(0)])
    variances = torch.stack([torch.full((4,), 99.0), x.var(0, correction=0)])

    mean, var = merge_moments(means, variances, torch.tensor([[0.0], [1.0]]).double())

    torch.testing.assert_close(mean, x.mean(0))
    torch.testing.assert_close(var, x.var(0, correction=0))


def test_its_gradients_are_those_by_finite_differences():
    means, variances = torch.randn(2, 3, 2, dtype=torch.float64).requires_grad_().unbind()
    shares = torch.tensor([[0.5], [0.2], [0.3]], dtype=torch.float64)

    assert torch.autograd.gradcheck(
        lambda *parts: merge_moments(*parts, shares), (means, variances)
    )
