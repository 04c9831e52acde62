"""The passes in float32 and half precision against sums written out in float64.

A sum of many numbers is near when its error is a few units of 2**-24 times the sum of their
absolute values.
"""

import pytest
import torch

from sn_openmmlab.kernels.aten import passes
from tests import layouts

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
SHAPES = [(5, 3), (2, 3, 40), (2, 5, 9, 3), (2, 2, 3, 2, 5), (2, 2, 16, 17)]
LAYOUTS = {
    **{name: layouts.LAYOUTS[name] for name in ('contiguous', 'channels_last', 'samples_inside')},
    'every_second': layouts.LAYOUTS['every_second'],
    'expanded': layouts.REPEATED['one_sample_repeated'],
}


@pytest.fixture(params=LAYOUTS)
def laid(request):
    """Return a function that gives a tensor the layout of the case."""
    return LAYOUTS[request.param]


def _statistics(dtype):
    return torch.float64 if dtype == torch.float64 else torch.float32


def _flat(x):
    return x.double().reshape(*x.shape[:2], -1)


def _unit(dtype):
    return torch.finfo(_statistics(dtype)).eps


def _tables(count, shape, dtype):
    return torch.randn(count, *shape[:2]).to(_statistics(dtype))


def _assert_within(found, expected, bound):
    assert ((found.double() - expected).abs() <= bound).all()


@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_moments_of_instances(shape, dtype, laid):
    correction = len(shape) % 2
    x = laid((torch.randn(shape, dtype=torch.float64) * 2 + 20).to(dtype))
    h, unit = _flat(x), _unit(dtype)

    mean, var = passes.instance_moments(x, correction, _statistics(dtype))

    assert mean.dtype == var.dtype == _statistics(dtype)
    _assert_within(mean, h.mean(-1), 2 * unit * h.abs().amax(-1))
    squares = (h - h.mean(-1, keepdim=True)).square().sum(-1)
    expected = squares / max(h.shape[-1] - correction, 1)
    # Rounding Welford's running mean adds an error linear in offset over standard deviation.
    offset = h.abs().amax(-1)
    bound = expected + expected.sqrt() * offset / 4 + (unit * offset) ** 2
    _assert_within(var, expected, 4 * unit * bound)


@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_normalize(shape, dtype, laid):
    x = laid(torch.randn(shape).to(dtype))
    centre, scale = _tables(2, shape, dtype)
    bias = torch.randn(shape[1]).to(scale.dtype) if len(shape) % 2 else None

    y = passes.normalize(x, centre, scale, bias)

    exact = (_flat(x) - centre.double()[..., None]) * scale.double()[..., None]
    exact = exact + (0 if bias is None else bias.double()[:, None])
    assert y.dtype == dtype and y.stride() == torch.empty_like(x).stride()
    own = torch.finfo(dtype).eps / 2 * exact.abs() + torch.finfo(dtype).smallest_normal
    _assert_within(_flat(y), exact, own + 4 * _unit(dtype) * (exact.abs() + 4))


@pytest.mark.parametrize('offset', [1e4, -1e6])
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_normalize_subtracts_a_large_offset_before_it_multiplies(shape, offset, laid):
    x = laid(torch.randint(-8, 8, shape) / 8 + offset)
    centre, scale = torch.full(shape[:2], offset), torch.rand(shape[:2]) + 0.5

    y = passes.normalize(x, centre, scale, None)

    # The difference is exact in float32, so only the product is rounded.
    exact = (_flat(x) - offset) * scale.double()[..., None]
    _assert_within(_flat(y), exact, 2.0**-24 * exact.abs())


@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_gradient_sums(shape, dtype, laid):
    x, dy = laid(torch.randn(shape).to(dtype)), torch.randn(shape).to(dtype)
    centre = _tables(1, shape, dtype)[0]

    total, dot = passes.gradient_sums(dy, x, centre)

    terms = _flat(dy) * (_flat(x) - centre.double()[..., None])
    _assert_within(total, _flat(dy).sum(-1), 2 * _unit(dtype) * _flat(dy).abs().sum(-1))
    largest = (_flat(dy).abs() * (_flat(x).abs() + centre.double().abs()[..., None])).sum(-1)
    _assert_within(dot, terms.sum(-1), 2 * _unit(dtype) * largest)


@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_input_gradient(shape, dtype, laid):
    x, dy = laid(torch.randn(shape).to(dtype)), torch.randn(shape).to(dtype)
    tables = _tables(3, shape, dtype)

    dx = passes.input_gradient(dy, x, *tables)

    scale, slope, shift = tables.double()[..., None]
    terms = [_flat(dy) * scale, _flat(x) * slope, shift]
    exact = sum(terms)
    assert dx.dtype == dtype and dx.stride() == torch.empty_like(x).stride()
    own = torch.finfo(dtype).eps / 2 * exact.abs() + torch.finfo(dtype).smallest_normal
    _assert_within(_flat(dx), exact, own + 2 * _unit(dtype) * sum(t.abs() for t in terms))


LONG = [(16, 16), (1, 4095), (7, 10001), (200, 304)]


@pytest.mark.parametrize(('name', 'units'), [('contiguous', 8), ('channels_last', 50)])
@pytest.mark.parametrize('size', LONG, ids=str)
def test_many_positions_lose_few_digits_to_the_order_of_summation(size, name, units):
    x, dy = (LAYOUTS[name](torch.randn(2, 3, *size) + 0.5) for _ in range(2))
    centre = torch.full((2, 3), 0.5)

    mean, var = passes.instance_moments(x, 0, torch.float32)
    total, dot = passes.gradient_sums(dy, x, centre)

    # Adding one number after the other would lose ten times as much.
    unit = 2.0**-24
    h, g = _flat(x), _flat(dy)
    terms = g * (h - 0.5)
    _assert_within(mean, h.mean(-1), 4 * unit * h.abs().mean(-1))
    _assert_within(var, h.var(-1, unbiased=False), units * unit * h.var(-1))
    _assert_within(total, g.sum(-1), units / 2 * unit * g.abs().sum(-1))
    _assert_within(dot, terms.sum(-1), units / 2 * unit * terms.abs().sum(-1))


@pytest.mark.parametrize('offset', [0.0, 1e3, -1e5])
@pytest.mark.parametrize('name', ['contiguous', 'channels_last'])
def test_an_offset_does_not_cancel_the_variance_of_many_positions(name, offset):
    x = LAYOUTS[name](torch.randn(2, 3, 100, 90) + offset)
    unit, h = 2.0**-24, _flat(x)

    mean, var = passes.instance_moments(x, 0, torch.float32)

    # A float32 mean has an error of half a unit of the offset, and the variance of its square.
    exact = h.var(-1, unbiased=False)
    _assert_within(mean, h.mean(-1), 4 * unit * (abs(offset) + 1))
    _assert_within(var, exact, unit * (50 * exact + 4 * abs(offset)) + (unit * offset) ** 2)


@pytest.mark.parametrize('value', [0.0, 0.1, -1234.567, 6e4])
def test_equal_numbers_in_a_long_row_are_their_mean_and_have_variance_zero(value):
    x = torch.full((2, 3, 30, 31), value)

    mean, var = passes.instance_moments(x, 0, torch.float32)

    assert torch.equal(mean, torch.full((2, 3), value))
    assert torch.equal(var, torch.zeros(2, 3))


@pytest.mark.parametrize('magnitude', [1e-18, 1e-10, 1e10, 1e17])
def test_long_rows_of_tiny_and_huge_numbers(magnitude):
    x = torch.randn(2, 3, 500) * magnitude

    mean, var = passes.instance_moments(x, 0, torch.float32)

    exact = x.double().var(-1, unbiased=False)
    torch.testing.assert_close(mean.double(), x.double().mean(-1), rtol=1e-5, atol=magnitude * 1e-7)
    torch.testing.assert_close(var.double(), exact, rtol=1e-5, atol=0)
