"""The table of instance moments against torch's own mean and variance."""

import pytest
import torch

from sn_openmmlab.kernels.plain.moments import average, centre, instance_moments, statistics_dtype

SHAPES = [(3, 4), (3, 4, 5), (3, 4, 5, 6), (3, 4, 2, 3, 5), (1, 1, 1, 1), (2, 3, 1, 1)]


def _normal(*shape, offset=0.0):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(shape, generator=generator, dtype=torch.float64) + offset


@pytest.mark.parametrize(
    ('given', 'expected'),
    [
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_statistics_of_half_precision_inputs_are_kept_in_float32(given, expected):
    assert statistics_dtype(given) == expected


@pytest.mark.parametrize('shape', SHAPES)
def test_without_correction_the_variance_divides_by_the_number_of_positions(shape):
    x = _normal(*shape)
    flat = x.reshape(*shape[:2], -1)

    mean, var = instance_moments(x, 0)

    torch.testing.assert_close(mean, flat.mean(-1))
    torch.testing.assert_close(var, flat.var(-1, unbiased=False))


@pytest.mark.parametrize('shape', [(3, 4, 5), (3, 4, 5, 6), (3, 4, 2, 3, 5), (1, 1, 2, 1)])
def test_with_correction_it_divides_by_one_less(shape):
    x = _normal(*shape)

    _, var = instance_moments(x, 1)

    torch.testing.assert_close(var, x.reshape(*shape[:2], -1).var(-1, unbiased=True))


@pytest.mark.parametrize('correction', [0, 1])
@pytest.mark.parametrize('shape', [(3, 4), (3, 4, 1), (3, 4, 1, 1), (3, 4, 1, 1, 1)])
def test_one_position_is_its_own_mean_and_has_variance_zero(shape, correction):
    x = _normal(*shape)

    mean, var = instance_moments(x, correction)

    assert torch.equal(mean, x.reshape(3, 4))
    assert torch.equal(var, torch.zeros_like(var))


@pytest.mark.parametrize('correction', [0, 1])
@pytest.mark.parametrize('shape', [(0, 4), (0, 4, 2, 2), (3, 4, 0), (3, 4, 2, 0), (0, 4, 0, 3, 3)])
def test_nothing_to_average_gives_zero(shape, correction):
    moments = instance_moments(torch.empty(shape), correction)

    for table in moments:
        assert torch.equal(table, torch.zeros(shape[:2]))


@pytest.mark.parametrize('value', [0.1, 3.7, 1234.567, 12345.67, 60000.0])
def test_the_mean_of_equal_numbers_is_that_number_in_float32(value):
    # 13 · 17 of them, so that their float32 sum is rounded.
    x = torch.full((2, 3, 13, 17), value)

    mean, var = instance_moments(x, 0)

    assert torch.equal(mean, torch.full((2, 3), value))
    assert torch.equal(var, torch.zeros(2, 3))


@pytest.mark.parametrize('offset', [1e4, -1e6])
def test_an_offset_does_not_cancel_the_variance_in_float32(offset):
    x = _normal(2, 3, 16, 16, offset=offset).float()

    _, var = instance_moments(x, 0)

    # The input is exact here, so only the sums round: a few units of 2**-24, relative.
    expected = x.double().var((2, 3), unbiased=False)
    torch.testing.assert_close(var.double(), expected, rtol=1e-6, atol=0)


def test_centre_returns_the_mean_and_the_deviations_and_their_gradients():
    x = _normal(3, 5).requires_grad_()

    mean, deviation = centre(x, 1)

    torch.testing.assert_close(mean, x.mean(1, keepdim=True))
    torch.testing.assert_close(deviation, x - x.mean(1, keepdim=True))
    assert torch.autograd.gradcheck(lambda table: centre(table, 1), (x,))


def test_average_keeps_the_dimension_and_is_zero_over_nothing():
    table = torch.tensor([[1.0, 2.0, 6.0]])

    assert torch.equal(average(table, 1), torch.tensor([[3.0]]))
    assert torch.equal(average(torch.empty(0, 3), 0), torch.zeros(1, 3))
