"""Pooling of instance moments against the moments of the pixels themselves (Eq. 2)."""

import pytest
import torch

from sn_openmmlab.kernels.plain.scopes import batch_moments, pool
from sn_openmmlab.scopes import SCOPES
from tests.reference import scope_moments

N, C, GROUPS, PIXELS = 3, 6, 2, 7


def _pixels(offset=0.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    spread = torch.arange(1.0, N * C + 1, dtype=torch.float64).reshape(N, C, 1)
    noise = torch.randn(N, C, PIXELS, generator=generator, dtype=torch.float64)
    return (noise * spread + spread.flip(0) + offset).to(dtype)


def _instances(pixels):
    return pixels.mean(-1), pixels.var(-1, unbiased=False)


def test_batch_moments_are_those_of_the_batch_scope():
    pixels = _pixels()

    found = batch_moments(*_instances(pixels))

    for table, expected in zip(found, scope_moments(pixels, 'bn'), strict=True):
        torch.testing.assert_close(table, expected[0])


def test_an_unknown_scope_is_refused():
    with pytest.raises(ValueError, match=r"scope 'xn' has no branch in .*: add one\."):
        pool(*_instances(_pixels()), 'xn', GROUPS)


@pytest.mark.parametrize('scope', SCOPES)
def test_pooled_moments_are_those_of_the_pixels(scope):
    pixels = _pixels()

    pooled = pool(*_instances(pixels), scope, GROUPS)

    for table, expected in zip(
        pooled, scope_moments(pixels, scope, num_groups=GROUPS), strict=True
    ):
        torch.testing.assert_close(table.expand(N, C), expected)


@pytest.mark.parametrize('scope', SCOPES)
@pytest.mark.parametrize('offset', [1e4, 1e6])
def test_an_offset_does_not_cancel_the_variance_in_float32(scope, offset):
    mean, var = _instances(_pixels(offset))

    _, pooled = pool(mean.float(), var.float(), scope, GROUPS)

    # The means are rounded to half a unit in the last place; the standard deviations are 1 to 20.
    _, expected = pool(mean.float().double(), var, scope, GROUPS)
    torch.testing.assert_close(pooled.double(), expected, rtol=1e-5, atol=0)
    _, exact = scope_moments(_pixels(offset), scope, num_groups=GROUPS)
    unit = torch.finfo(torch.float32).eps * offset
    assert ((pooled - exact).abs() <= 2 * unit * exact.sqrt() + 1e-5 * exact).all()


@pytest.mark.parametrize('scope', SCOPES)
@pytest.mark.parametrize('value', [3.7, 12345.67, 60000.0])
def test_equal_means_are_their_own_mean_and_add_no_variance_in_float32(scope, value):
    mean, var = torch.full((3, 66), value), torch.full((3, 66), 0.5)

    pooled_mean, pooled_var = pool(mean, var, scope, 2)

    assert torch.equal(pooled_mean.expand(3, 66), mean)
    torch.testing.assert_close(pooled_var.expand(3, 66), var)


@pytest.mark.parametrize(
    ('scope', 'shape'), [('in', (N, C)), ('gn', (N, C)), ('ln', (N, 1)), ('bn', (1, C))]
)
def test_the_tables_have_the_documented_shapes(scope, shape):
    pooled = pool(*_instances(_pixels()), scope, GROUPS)

    assert [tuple(table.shape) for table in pooled] == [shape, shape]


@pytest.mark.parametrize(
    ('scope', 'shape'), [('in', (0, C)), ('gn', (0, C)), ('ln', (0, 1)), ('bn', (1, C))]
)
def test_no_samples_give_empty_tables_and_zeros_for_the_batch(scope, shape):
    pooled = pool(torch.empty(0, C), torch.empty(0, C), scope, GROUPS)

    for table in pooled:
        assert torch.equal(table, torch.zeros(shape))


@pytest.mark.parametrize('scope', ['in', 'ln', 'bn'])
def test_only_group_normalization_uses_the_number_of_groups(scope):
    instances = _instances(_pixels())

    pooled = pool(*instances, scope, 32)  # 32 does not divide 6 channels

    for table, other in zip(pooled, pool(*instances, scope, 1), strict=True):
        assert torch.equal(table, other)
