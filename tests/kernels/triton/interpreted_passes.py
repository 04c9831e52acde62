"""The passes over the big tensors against those of ATen in float64: all layouts, long rows.

A sum is near when its error is a few float32 units of the sum of the absolute values.
"""

import pytest
import torch

from sn_openmmlab.kernels.aten import passes as reference
from sn_openmmlab.kernels.aten import tables as reference_tables
from sn_openmmlab.kernels.contract import Forward, Mixture
from sn_openmmlab.kernels.triton import stages, tiles
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


def _mixture(correction=0):
    return Mixture(('in',), 1, correction, 1e-3)


@pytest.fixture
def mixed(x):
    """Return a centre near the numbers of `x`, and scales."""
    return torch.stack((torch.randn(x.shape[:2]) + 20, torch.rand(x.shape[:2]) + 0.5))


@pytest.fixture
def weight(x):
    return torch.randn(x.shape[1]) if x.shape[0] > 1 else None


def _scale(mixed, weight):
    return mixed[1].double() * (1 if weight is None else weight.double())


def _double(vector):
    return None if vector is None else vector.double()


def _sum(x):
    return x.double().reshape(*x.shape[:2], -1).sum(-1)


def _assert_within(found, expected, bound):
    assert found.shape == expected.shape
    assert ((found.double() - expected).abs() <= bound).all()


def test_moments_of_instances(x):
    correction = x.dim() % 2

    (mean, var), batch = stages.observe(x, _mixture(correction), False)

    exact = reference.instance_moments(x.double(), correction, torch.float64)
    highest = x.double().abs().max()
    assert mean.dtype == var.dtype == torch.float32 and batch is None
    _assert_within(mean, exact[0], 2 * UNIT * highest)
    _assert_within(var, exact[1], 4 * UNIT * exact[1] + (2 * UNIT * highest) ** 2)


def test_normalize(x, mixed, weight, rounding):
    bias = torch.randn(x.shape[1]) if x.shape[0] > 1 else None
    instances = torch.stack((mixed[0], 1 / mixed[1].square()))

    y, found = stages.normalize(
        x, instances, None, (weight, bias), (torch.ones(1), torch.ones(1)), _mixture()
    )

    in_double = None if bias is None else bias.double()
    scale = _scale(found, weight)
    exact = reference.normalize(x.double(), found[0].double(), scale, in_double)
    assert y.dtype == x.dtype and y.stride() == torch.empty_like(x).stride()
    _assert_within(y, exact, rounding(y, exact) + 3 * UNIT * (exact.abs() + 4))


def test_gradient_sums(x, dy, mixed):
    (total, dot), _ = stages.sum_gradients(dy, x, mixed, None)

    centre = mixed[0].double()
    exact = reference.gradient_sums(dy.double(), x.double(), centre)
    away = (x.double() - like(centre, x)).abs()
    assert total.dtype == dot.dtype == torch.float32
    _assert_within(total, exact[0], 4 * UNIT * _sum(dy.abs()))
    _assert_within(dot, exact[1], 4 * UNIT * _sum(dy.double().abs() * away))


def test_input_gradient(x, dy, mixed, weight, rounding):
    sums = torch.randn(2, *x.shape[:2])
    instances = torch.stack((mixed[0] + 0.1, 1 / mixed[1].square()))
    forward = Forward(instances, mixed, None, weight, (torch.ones(1), torch.ones(1)))

    dx, *_ = stages.input_gradients(dy, x, sums, forward, None, _mixture(), True)

    positions = max(x[0, 0].numel(), 1)
    exact_forward = Forward(
        instances.double(), mixed.double(), None, _double(weight), (torch.ones(1).double(),) * 2
    )
    slope, shift, *_ = reference_tables.position_gradients(
        sums.double(), exact_forward, None, _mixture(), positions
    )
    scale = _scale(mixed, weight)
    exact = reference.input_gradient(dy.double(), x.double(), scale, slope, shift)
    centre, scale, slope, shift = (like(t, x) for t in (mixed[0].double(), scale, slope, shift))
    terms = (dy.double() * scale, x.double() * slope, centre * slope, shift)
    assert dx.dtype == x.dtype and dx.stride() == torch.empty_like(x).stride()
    bound = 4 * UNIT * sum(term.abs() for term in terms)
    _assert_within(dx, exact, rounding(dx, exact) + bound)


@pytest.mark.parametrize('name', ['contiguous', 'channels_last'])
@pytest.mark.parametrize('value', [0.0, 0.1, -1234.567, 6e4])
def test_equal_numbers_are_their_mean_and_have_variance_zero(value, name):
    x = LAYOUTS[name](torch.full((2, 3, 61, 83), value))

    (mean, var), _ = stages.observe(x, _mixture(1), False)

    assert torch.equal(mean, torch.full((2, 3), value))
    assert torch.equal(var, torch.zeros(2, 3))


@pytest.mark.parametrize('shape', [(0, 3, 4, 4), (2, 3, 0, 4), (0, 3)])
def test_there_may_be_no_samples_and_no_positions(shape):
    x, tables = torch.empty(shape), torch.ones(2, *shape[:2])
    controls, mixture = (torch.ones(2), torch.ones(2)), Mixture(('in', 'bn'), 1, 0, 1e-3)

    instances, batch = stages.observe(x, mixture, True)
    sums, channels = stages.sum_gradients(x, x, tables, None)
    y, mixed = stages.normalize(x, instances, batch, (None, None), controls, mixture)
    forward = Forward(instances, mixed, batch, None, controls)
    dx, *d_controls = stages.input_gradients(x, x, sums, forward, channels[2:], mixture, True)

    for table in (instances, batch, sums, channels, *d_controls):
        assert torch.equal(table, torch.zeros_like(table))
    assert y.shape == dx.shape == shape


@pytest.mark.parametrize(
    'name', ['contiguous', 'channels_last', 'last_two_swapped', 'samples_inside']
)
def test_no_dense_tensor_is_copied(name):
    x = LAYOUTS[name](torch.randn(2, 3, 4, 5))

    repeated = torch.ones(()).expand(x.shape)

    assert tiles.visit(x.shape, x.stride(), repeated.stride(), x.stride()) is not None


@pytest.mark.parametrize(
    ('shape', 'name', 'unit'),
    [
        ((2, 3, 14, 14), 'contiguous', 4),
        ((2, 3, 7, 7), 'contiguous', 1),
        ((2, 3, 8), 'every_second', 1),
    ],
)
def test_the_unit_divides_whatever_rows_start_at(shape, name, unit):
    visit = tiles.visit(shape, LAYOUTS[name](torch.randn(shape)).stride())

    assert visit.unit == unit
