"""The sums of the compiled kernels against float64, on rows and panels of every length.

A unit is the unit roundoff of the statistics' type.
"""

import pytest
import torch

from sn_openmmlab.kernels.contract import Mixture
from sn_openmmlab.kernels.cpp import stages
from tests import layouts

LAYOUTS = {**layouts.LAYOUTS, **layouts.REPEATED}
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
# Blocks end after 1024 numbers of a row and 128 positions of a panel; segments after 65536 and 1024
# positions; vectors hold 8 numbers, or 4.
SIZES = [(1,), (7,), (9, 5), (33, 31), (128,), (129,), (5, 205), (1024,), (1025,), (3, 4099)]
SHAPES = [*((2, 3, *size) for size in SIZES), (1, 1, 65536), (1, 2, 65537), (1, 1, 200_003)]
WIDE = [(5, 3), (3, 520), (2, 513, 9), (2, 17, 3, 2, 5)]
UNITS = 8


def _unit(dtype):
    return torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps / 2


def _flat(x):
    return x.double().reshape(*x.shape[:2], -1)


def _observe(x, correction=0):
    instances, batch = stages.observe(x, Mixture(('in',), 1, correction, 0.0), True)
    return *instances.double(), *batch.double()


def _assert_within(found, expected, bound):
    assert ((found - expected).abs() <= bound).all()


def _assert_moments(x):
    mean, var, batch_mean, batch_var = _observe(x)
    # Float64 sums float64 in blocks too, but has no wider type to merge them in.
    units = 8 * UNITS if x.dtype == torch.float64 else UNITS
    h, unit = _flat(x), _unit(x.dtype)
    exact, highest = h.var(-1, correction=0), h.abs().amax(-1)
    _assert_within(mean, h.mean(-1), units / 4 * unit * highest)
    # A mean is rounded by half a unit of its value, and the variance by the square of that.
    _assert_within(var, exact, units * unit * (exact + highest * exact.sqrt()))
    samples = h.transpose(0, 1).flatten(1)
    exact, highest = samples.var(-1, correction=0), samples.abs().amax(-1)
    _assert_within(batch_mean, samples.mean(-1), units / 4 * unit * highest)
    bound = units * unit * (exact + highest * exact.sqrt()) + (2 * unit * highest) ** 2
    _assert_within(batch_var, exact, bound)


@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('name', ['contiguous', 'channels_last'])
@pytest.mark.parametrize('shape', [*SHAPES, *WIDE], ids=str)
def test_moments_of_any_number_of_positions(shape, name, dtype):
    torch.manual_seed(0)
    _assert_moments(LAYOUTS[name]((torch.randn(shape) * 2 + 3).to(dtype)))


@pytest.mark.parametrize('name', LAYOUTS)
@pytest.mark.parametrize('shape', [(4, 6, 5, 7), (2, 3, 4, 5, 2)], ids=str)
def test_moments_in_any_layout(shape, name):
    torch.manual_seed(0)
    _assert_moments(LAYOUTS[name](torch.randn(shape) * 2 + 3))


@pytest.mark.parametrize('name', ['contiguous', 'channels_last'])
@pytest.mark.parametrize('offset', [1e2, 1e4, -1e5])
def test_an_offset_costs_the_variance_no_more_than_the_rounding_of_the_input(offset, name):
    torch.manual_seed(0)
    x = LAYOUTS[name](torch.randn(2, 3, 100, 90) + offset)

    _, var, *_ = _observe(x)

    # Each number is known to half a unit of the offset; the sums must not add to that.
    exact = _flat(x).var(-1, correction=0)
    torch.testing.assert_close(var, exact, rtol=16 * _unit(x.dtype), atol=0)


def _step(x):
    x[..., 1500:] += 1e4
    return x


def _ramp(x):
    return x + torch.arange(x.shape[-1]) * 10.0


def _first(x):
    x[..., 0] = 1e6
    return x


def _spread(x):
    """Spoil all numbers that an origin could be taken from."""
    x[..., :: x.shape[-1] // 4] = 1e6
    return x


def _last(x):
    x[..., -1] = -1e6
    return x


@pytest.mark.parametrize('length', [40, 1024, 3000])
@pytest.mark.parametrize('name', ['contiguous', 'channels_last'])
@pytest.mark.parametrize('spoil', [_step, _ramp, _first, _spread, _last])
def test_rows_that_are_not_the_same_everywhere(spoil, name, length):
    torch.manual_seed(0)
    x = LAYOUTS[name](spoil(torch.randn(2, 10, length)))

    mean, var, *_ = _observe(x)

    h = _flat(x)
    torch.testing.assert_close(mean, h.mean(-1), rtol=1e-6, atol=1e-6 * h.abs().max().item())
    torch.testing.assert_close(var, h.var(-1, correction=0), rtol=2e-6, atol=0)


@pytest.mark.parametrize('name', ['contiguous', 'channels_last'])
@pytest.mark.parametrize('value', [0.0, 0.1, -1234.567, 6e4, 1e30])
def test_equal_numbers_are_their_mean_and_have_variance_zero(value, name):
    x = LAYOUTS[name](torch.full((2, 10, 61, 83), value))

    instances, batch = stages.observe(x, Mixture(('in',), 1, 1, 0.0), True)

    for mean, var in (instances, batch):
        assert torch.equal(mean, torch.full_like(mean, value))
        assert torch.equal(var, torch.zeros_like(var))


@pytest.mark.parametrize('magnitude', [1e-18, 1e-10, 1e10, 1e17])
def test_tiny_and_huge_numbers(magnitude):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 500) * magnitude

    _, var, *_ = _observe(x)

    torch.testing.assert_close(var, _flat(x).var(-1, correction=0), rtol=1e-5, atol=0)


@pytest.mark.parametrize('name', ['contiguous', 'channels_last'])
@pytest.mark.parametrize('fault', [float('nan'), float('inf'), float('-inf')])
@pytest.mark.parametrize('place', [0, 700, 1999])
def test_a_fault_spoils_its_own_channel_alone(place, fault, name):
    x = torch.randn(2, 10, 2000)
    x[1, 4, place] = fault

    mean, var, batch_mean, batch_var = _observe(LAYOUTS[name](x))

    sound = torch.ones(2, 10, dtype=torch.bool)
    sound[1, 4] = False
    assert torch.equal(mean.isfinite() & var.isfinite(), sound)
    assert torch.equal(batch_mean.isfinite() & batch_var.isfinite(), sound[1])


@pytest.mark.parametrize('correction', [0, 1])
def test_the_divisor_is_the_number_of_positions_less_the_correction_at_least_one(correction):
    x = torch.tensor([[[1.0, 2.0, 6.0]], [[4.0, 4.0, 7.0]]])

    _, var, *_ = _observe(x, correction)
    _, single, *_ = _observe(x[..., :1], correction)

    torch.testing.assert_close(var, _flat(x).var(-1, correction=correction))
    assert torch.equal(single, torch.zeros(2, 1, dtype=torch.float64))


@pytest.mark.parametrize('shape', [(0, 3, 4, 4), (2, 3, 0, 4), (0, 3)])
def test_there_may_be_no_samples_and_no_positions(shape):
    x, mixed = torch.empty(shape), torch.ones(2, *shape[:2])

    found = [*stages.observe(x, Mixture(('in',), 1, 0, 0.0), True)]
    found += stages.sum_gradients(x, x, mixed, None)

    assert all(torch.equal(t, torch.zeros_like(t)) for t in found)


@pytest.mark.parametrize('name', ['contiguous', 'channels_last'])
@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('shape', [(2, 3, 7), (2, 10, 33, 31), (1, 2, 65537), *WIDE], ids=str)
def test_gradient_sums(shape, dtype, name):
    torch.manual_seed(0)
    x, dy = (LAYOUTS[name](torch.randn(shape).to(dtype)) for _ in range(2))
    statistics = torch.float64 if dtype == torch.float64 else torch.float32
    mixed = torch.rand(2, *shape[:2]).to(statistics)

    (total, dot), (d_weight, d_bias, *_) = stages.sum_gradients(dy, x, mixed, None)

    g, unit = _flat(dy), _unit(dtype)
    terms = g * (_flat(x) - mixed[0].double()[..., None])
    _assert_within(total, g.sum(-1), UNITS * unit * g.abs().sum(-1))
    _assert_within(dot, terms.sum(-1), UNITS * unit * terms.abs().sum(-1))
    scaled = terms * mixed[1].double()[..., None]
    _assert_within(d_bias, g.sum((0, 2)), UNITS * unit * g.abs().sum((0, 2)))
    _assert_within(d_weight, scaled.sum((0, 2)), UNITS * unit * scaled.abs().sum((0, 2)))


@pytest.mark.parametrize('name', ['contiguous', 'channels_last'])
def test_a_hundred_million_numbers_with_an_offset_keep_their_digits(name):
    # Whole numbers, whose sums float64 holds exactly.
    row = (torch.arange(5_000_000) * 7919 % 2001 - 1000).float() + 1e4
    x = LAYOUTS[name](row.expand(1, 20, -1))
    exact = row.double()

    mean, var, *_ = _observe(x)

    torch.testing.assert_close(mean, exact.mean().expand(1, 20), rtol=1e-7, atol=0)
    torch.testing.assert_close(var, exact.var(correction=0).expand(1, 20), rtol=1e-6, atol=0)
