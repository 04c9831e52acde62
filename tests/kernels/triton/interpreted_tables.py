"""The tables against those of ATen in float64, for scopes in any order and tables of any size."""

from typing import NamedTuple

import pytest
import torch

from sn_openmmlab.kernels.aten import stages as reference
from sn_openmmlab.kernels.contract import Forward, Mixture
from sn_openmmlab.kernels.triton import plans, stages, tuning

UNIT = torch.finfo(torch.float32).eps
ALL = ('gn', 'in', 'bn', 'ln')
SCOPES = [('in',), ('bn',), ('ln', 'gn'), ALL, ('in', 'ln', 'bn')]
# With the number of groups of channels that have ratios of their own.
GROUPED = [*((scopes, 1) for scopes in SCOPES), (('ln', 'gn'), 3), (ALL, 3)]
SHAPES = [(2, 6, 9), (1, 1, 3), (3, 2, 5)]
OFFSET = 100.0


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Make few channels, samples and positions more than a tile holds, so that loops are tested."""
    monkeypatch.setattr(tuning, 'TILE', 8)
    monkeypatch.setattr(tuning, 'MERGE_TILE', 4)
    monkeypatch.setattr(tuning, 'MOST_PARTS', 2)
    monkeypatch.setattr(tuning, 'MOST_CHANNELS', 2)
    plans.forward_plan.cache_clear()
    plans.backward_plan.cache_clear()
    yield
    plans.forward_plan.cache_clear()
    plans.backward_plan.cache_clear()


def _draw(shape):
    return torch.randn(shape) + OFFSET


def _mixture(scopes, channels):
    return Mixture(scopes, 1 if channels == 1 else 2, 1, 1e-3)


class Mixed(NamedTuple):
    """An input, what is mixed of it, and the moments; `batch` is in float64, as of processes."""

    x: torch.Tensor
    mixture: Mixture
    controls: tuple[torch.Tensor, torch.Tensor]
    instances: torch.Tensor
    batch: torch.Tensor | None


@pytest.fixture(params=[(2, 6, 2), (1, 1, 3)], ids=str)
def shape(request):
    return request.param


@pytest.fixture(params=GROUPED, ids=lambda case: '-'.join([*case[0], str(case[1])]))
def mixed(request, shape):
    scopes, groups = request.param
    x, mixture = _draw(shape), _mixture(scopes, shape[1])
    sizes = (len(scopes),) if groups == 1 else (min(groups, shape[1]), len(scopes))
    wants_batch = 'bn' in scopes
    instances, _ = reference.observe(x, mixture, wants_batch)
    _, batch = reference.observe(x.double(), mixture, wants_batch)
    return Mixed(x, mixture, torch.randn(2, *sizes).unbind(), instances, batch)


def _double(values):
    return None if values is None else tuple(None if v is None else v.double() for v in values)


def _assert_near(found, expected, scale, units=16):
    assert found.shape == expected.shape and found.isfinite().all()
    assert ((found.double() - expected).abs() <= units * UNIT * scale).all()


@pytest.mark.parametrize('scopes', [('in',), ('bn',)], ids='-'.join)
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_moments(shape, scopes):
    x, mixture = _draw(shape), _mixture(scopes, shape[1])

    instances, batch = stages.observe(x, mixture, 'bn' in scopes)

    exact, exact_batch = reference.observe(x.double(), mixture, 'bn' in scopes)
    for found, expected in [(instances, exact), (batch, exact_batch)]:
        assert (found is None) == (expected is None)
        if found is not None:
            mean, var = expected
            _assert_near(found[0], mean, OFFSET, 2)
            # The means of the parts are only known to their rounding.
            _assert_near(found[1], var, var * (1 + OFFSET / 16) + UNIT * OFFSET**2)


def test_mix(mixed):
    x, mixture, controls, instances, batch = mixed

    _, (centre, rstd) = stages.normalize(x, instances, batch, (None, None), controls, mixture)

    _, exact = reference.normalize(
        x.double(), instances.double(), batch, (None, None), _double(controls), mixture
    )
    _assert_near(centre, exact[0], OFFSET, 2)
    # The difference of two means is only known to the rounding of the means.
    _assert_near(rstd, exact[1], exact[1] * (1 + OFFSET * exact[1] / 16))


def test_ratios_that_do_not_quite_add_up_to_one_cost_no_digits():
    x = torch.full((3, 4, 1), 6e4)
    controls = torch.tensor([0.3, -0.7, 1.1]), torch.zeros(3)
    mixture = Mixture(('in', 'ln', 'bn'), 1, 0, 1e-5)
    instances, batch = stages.observe(x, mixture, True)

    _, (centre, _) = stages.normalize(x, instances, batch, (None, None), controls, mixture)

    assert torch.equal(centre, x[..., 0])


@pytest.mark.parametrize('weight_type', [None, torch.float32, torch.bfloat16])
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_sums(shape, weight_type):
    x, dy = _draw(shape), torch.randn(shape)
    mixed = torch.stack((x.mean(2), torch.rand(x.shape[:2]) + 0.5))
    weight = None if weight_type is None else torch.randn(x.shape[1]).to(weight_type)

    sums, channels = stages.sum_gradients(dy, x, mixed, weight)

    exact, exact_channels = reference.sum_gradients(
        dy.double(), x.double(), mixed.double(), _double([weight])[0]
    )
    scale = 4 * x[:, 0].numel()
    _assert_near(sums, exact, scale)
    _assert_near(channels, exact_channels, scale)


@pytest.mark.parametrize(('given', 'with_weight'), [(True, False), (False, True)])
def test_gradients(mixed, given, with_weight):
    x, mixture, controls, instances, batch = mixed
    dy = torch.randn_like(x)
    mixed = torch.stack((instances[0] + 0.1, torch.rand(x.shape[:2]) + 0.5))
    sums = torch.randn(2, *x.shape[:2])
    with_batch = 'bn' in mixture.scopes and not given
    d_batch = torch.randn(2, x.shape[1]) if with_batch else None
    weight = torch.randn(x.shape[1]) if with_weight else None

    found = stages.input_gradients(
        *(dy, x, sums, Forward(instances, mixed, batch, weight, controls), d_batch, mixture, True)
    )

    tables = (instances.double(), mixed.double(), batch)
    forward = Forward(*tables, _double([weight])[0], _double(controls))
    exact = reference.input_gradients(
        *(dy.double(), x.double(), sums.double(), forward),
        *(None if d_batch is None else d_batch.double(), mixture, True),
    )
    _assert_near(found[0], exact[0], OFFSET)
    for value, expected in zip(found[1:], exact[1:], strict=True):
        _assert_near(value, expected, OFFSET * max(1, instances[0].numel()) ** 0.5)
