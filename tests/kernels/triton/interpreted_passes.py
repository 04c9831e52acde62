"""The passes against those of ATen in float64: every layout, and rows of every length.

A sum is near when its error is a few float32 units of the sum of the absolute values.
"""

import pytest
import torch

from sn_openmmlab.kernels.aten import passes as reference
from sn_openmmlab.kernels.triton import passes, tiles
from tests import layouts
from tests.reference import like

LAYOUTS = {**layouts.LAYOUTS, **layouts.REPEATED}

UNIT = torch.finfo(torch.float32).eps
CASES = [
    ((5, 3), 'contiguous'),
    ((1, 1), 'contiguous'),
    ((70, 9), 'every_second_channel'),
    ((2, 3, 40), 'every_second'),
    ((3, 5, 9, 3), 'channels_last'),
    ((2, 40, 13, 17), 'channels_last'),
    ((2, 3, 3, 4, 5), 'channels_last'),
    ((3, 5, 4, 7), 'samples_inside'),
    ((2, 3, 5, 7), 'last_two_swapped'),
    ((2, 3, 2, 4, 5), 'last_two_swapped'),
    ((2, 3, 5, 7), 'channels_between'),
    ((2, 3, 4, 6), 'every_second_channel'),
    ((2, 3, 4, 6), 'part'),
    ((3, 4, 5, 2), 'one_sample_repeated'),
    ((2, 3, 4, 4), 'one_number_repeated'),
    ((2, 17, 14, 14), 'contiguous'),
    ((30, 7, 1), 'contiguous'),
    ((2, 3, 4096), 'contiguous'),
    ((1, 2, 4097), 'contiguous'),
    ((1, 2, 20000), 'contiguous'),
]
HALVES = [((2, 3, 8, 8), 'contiguous'), ((2, 40, 9, 5), 'channels_last'), ((2, 3, 5, 7), 'part')]
TYPES = [(*case, torch.float32) for case in CASES]
TYPES += [(*case, dtype) for case in HALVES for dtype in (torch.float16, torch.bfloat16)]


@pytest.fixture(params=TYPES, ids=lambda case: '-'.join(map(str, case)))
def x(request):
    shape, name, dtype = request.param
    return LAYOUTS[name]((torch.randn(shape) * 2 + 20).to(dtype))


@pytest.fixture(params=['like x', 'one_number_repeated'])
def dy(request, x):
    dy = torch.randn(x.shape).to(x.dtype)
    if request.param == 'like x':
        return torch.empty_like(x).copy_(dy)
    return LAYOUTS[request.param if x.dim() > 3 else 'contiguous'](dy)


def _tables(count, x):
    return torch.randn(count, *x.shape[:2])


def _sum(x):
    return x.double().reshape(*x.shape[:2], -1).sum(-1)


def _assert_within(found, expected, bound):
    assert found.shape == expected.shape
    assert ((found.double() - expected).abs() <= bound).all()


def test_moments_of_instances(x):
    correction = x.dim() % 2

    mean, var = passes.instance_moments(x, correction, torch.float32)

    exact = reference.instance_moments(x.double(), correction, torch.float64)
    highest = x.double().abs().max()
    assert mean.dtype == var.dtype == torch.float32
    _assert_within(mean, exact[0], 2 * UNIT * highest)
    _assert_within(var, exact[1], 4 * UNIT * exact[1] + (2 * UNIT * highest) ** 2)


def test_normalize(x, rounding):
    centre, scale = _tables(2, x)
    bias = torch.randn(x.shape[1]) if x.shape[0] > 1 else None

    y = passes.normalize(x, centre, scale, bias)

    in_double = None if bias is None else bias.double()
    exact = reference.normalize(x.double(), centre.double(), scale.double(), in_double)
    assert y.dtype == x.dtype and y.stride() == torch.empty_like(x).stride()
    _assert_within(y, exact, rounding(y, exact) + 2 * UNIT * (exact.abs() + 4))


def test_gradient_sums(x, dy):
    centre = _tables(1, x)[0] + 20

    total, dot = passes.gradient_sums(dy, x, centre)

    exact = reference.gradient_sums(dy.double(), x.double(), centre.double())
    away = (x.double() - like(centre.double(), x)).abs()
    assert total.dtype == dot.dtype == torch.float32
    _assert_within(total, exact[0], 4 * UNIT * _sum(dy.abs()))
    _assert_within(dot, exact[1], 4 * UNIT * _sum(dy.double().abs() * away))


def test_input_gradient(x, dy, rounding):
    tables = _tables(4, x)

    dx = passes.input_gradient(dy, x, *tables)

    centre, scale, slope, offset = tables.double()
    shift = offset - centre * slope
    exact = reference.input_gradient(dy.double(), x.double(), scale, slope, shift)
    centre, scale, slope, offset = (like(table.double(), x) for table in tables)
    terms = (dy.double() * scale, x.double() * slope, centre * slope, offset)
    assert dx.dtype == x.dtype and dx.stride() == torch.empty_like(x).stride()
    bound = 2 * UNIT * sum(term.abs() for term in terms)
    _assert_within(dx, exact, rounding(dx, exact) + bound)


@pytest.mark.parametrize('name', ['contiguous', 'channels_last'])
@pytest.mark.parametrize('value', [0.0, 0.1, -1234.567, 6e4])
def test_equal_numbers_are_their_mean_and_have_variance_zero(value, name):
    x = LAYOUTS[name](torch.full((2, 3, 61, 83), value))

    mean, var = passes.instance_moments(x, 1, torch.float32)

    assert torch.equal(mean, torch.full((2, 3), value))
    assert torch.equal(var, torch.zeros(2, 3))


@pytest.mark.parametrize('shape', [(0, 3, 4, 4), (2, 3, 0, 4), (0, 3)])
def test_there_may_be_no_samples_and_no_positions(shape):
    x, table = torch.empty(shape), torch.ones(shape[:2])

    found = [*passes.instance_moments(x, 0, torch.float32), *passes.gradient_sums(x, x, table)]

    assert all(torch.equal(t, torch.zeros(shape[:2])) for t in found)
    assert passes.normalize(x, table, table, torch.ones(3)).shape == shape
    assert passes.input_gradient(x, x, table, table, table, table).shape == shape


@pytest.mark.parametrize(
    'name', ['contiguous', 'channels_last', 'last_two_swapped', 'samples_inside']
)
def test_no_dense_tensor_is_copied(name):
    x = LAYOUTS[name](torch.randn(2, 3, 4, 5))

    _, (visited, grads) = tiles.visit(x, torch.ones(()).expand(x.shape))

    assert visited.data_ptr() == x.data_ptr()
    assert grads.untyped_storage().nbytes() == 4


@pytest.mark.parametrize(
    ('shape', 'name', 'unit'),
    [
        ((2, 3, 14, 14), 'contiguous', 4),
        ((2, 3, 7, 7), 'contiguous', 1),
        ((2, 3, 8), 'every_second', 1),
    ],
)
def test_the_unit_divides_whatever_rows_start_at(shape, name, unit):
    visit, _ = tiles.visit(LAYOUTS[name](torch.randn(shape)))

    assert visit.unit == unit
