"""The tables against those of ATen in float64, for scopes in any order and tables of any size."""

import pytest
import torch

from sn_openmmlab.kernels.aten import tables as reference
from sn_openmmlab.kernels.contract import Forward, Mixture
from sn_openmmlab.kernels.triton import tables, tuning

UNIT = torch.finfo(torch.float32).eps
SCOPES = [('in',), ('bn',), ('ln', 'gn'), ('gn', 'in', 'bn', 'ln'), ('in', 'ln', 'bn')]
SHAPES = [(2, 6), (1, 1), (0, 6)]
OFFSET = 100.0


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Make few channels and samples more than a tile holds, so that the loops are tested."""
    monkeypatch.setattr(tuning, 'MERGE_TILE', 2)
    monkeypatch.setattr(tuning, 'MOST_PARTS', 1)
    monkeypatch.setattr(tuning, 'MOST_CHANNELS', 2)


@pytest.fixture(params=SHAPES, ids=str)
def instances(request):
    shape = request.param
    return torch.randn(shape) + OFFSET, torch.rand(shape)


@pytest.fixture(params=SCOPES, ids='-'.join)
def mixture(request, instances):
    groups = 1 if instances[0].shape[1] == 1 else 2
    return Mixture(request.param, groups, 1, 1e-3)


@pytest.fixture
def batch(instances, mixture):
    """Return the moments of `'bn'` in float64, as the merged moments of processes are."""
    if 'bn' not in mixture.scopes:
        return None
    return reference.batch_moments(_stacked(instances))


@pytest.fixture(params=[1, 3], ids='ratio groups {}'.format)
def controls(request, mixture, instances):
    if request.param == 1:
        return torch.randn(2, len(mixture.scopes)).unbind()
    groups = min(request.param, instances[0].shape[1])
    return torch.randn(2, groups, len(mixture.scopes)).unbind()


def _double(values):
    return None if values is None else tuple(None if v is None else v.double() for v in values)


def _stacked(pair):
    """Return a pair of tables in float64 as the contract has it."""
    return None if pair is None else torch.stack(_double(pair))


def _assert_near(found, expected, scale, units=16):
    assert found.shape == expected.shape and found.isfinite().all()
    assert ((found.double() - expected).abs() <= units * UNIT * scale).all()


def test_batch_moments(instances):
    found = tables.batch_moments(*instances)

    mean, var = reference.batch_moments(_stacked(instances))
    _assert_near(found[0], mean, OFFSET, 1)
    _assert_near(found[1], var, var + UNIT * OFFSET**2)


def test_mix(instances, batch, controls, mixture):
    centre, rstd = tables.mix(*instances, batch, controls, mixture)

    exact = reference.mix(_stacked(instances), batch, _double(controls), mixture)
    _assert_near(centre, exact[0], OFFSET, 2)
    # The difference of two means is only known to the rounding of the means.
    _assert_near(rstd, exact[1], exact[1] * (1 + OFFSET * exact[1] / 16))


def test_ratios_that_do_not_quite_add_up_to_one_cost_no_digits():
    mean, var = torch.full((3, 4), 6e4), torch.zeros(3, 4)
    controls = torch.tensor([0.3, -0.7, 1.1]), torch.zeros(3)
    mixture = Mixture(('in', 'ln', 'bn'), 1, 0, 1e-5)

    centre, _ = tables.mix(mean, var, tables.batch_moments(mean, var), controls, mixture)

    assert torch.equal(centre, mean)


@pytest.mark.parametrize('weight_type', [None, torch.float32, torch.bfloat16])
def test_channel_gradients(instances, weight_type):
    total, dot = torch.randn(2, *instances[0].shape)
    rstd = torch.rand_like(total) + 0.5
    weight = None if weight_type is None else torch.randn(total.shape[1]).to(weight_type)

    found = tables.channel_gradients(total, dot, rstd, weight)

    sums, mixed = _stacked((total, dot)), _stacked((rstd, rstd))
    exact = reference.channel_gradients(sums, mixed, _double([weight])[0])
    scale = max(1, total.shape[0]) * 4
    for value, expected in zip(found, exact, strict=True):
        _assert_near(value, expected, scale)


@pytest.mark.parametrize(('given', 'with_weight'), [(True, False), (False, True)])
def test_position_gradients(instances, batch, controls, mixture, given, with_weight):
    shape = instances[0].shape
    sums = torch.randn(2, *shape).unbind()
    mixed = instances[0] + 0.1, torch.rand(shape) + 0.5
    with_batch = 'bn' in mixture.scopes and not given
    d_batch = torch.randn(2, shape[1]).unbind() if with_batch else None
    weight = torch.randn(shape[1]) if with_weight else None
    positions = 35

    found = tables.position_gradients(
        sums, instances, mixed, batch, d_batch, weight, controls, mixture, positions
    )

    tables_of = (_stacked(instances), _stacked(mixed), batch)
    forward = Forward(*tables_of, _double([weight])[0], _double(controls))
    exact = reference.position_gradients(
        _stacked(sums), forward, _stacked(d_batch), mixture, positions
    )
    _assert_near(found[0], exact[0], 1.0)
    # The reference has the shift at 0, Triton's kernels have it at the mixed mean.
    _assert_near(found[1], exact[1] + mixed[0].double() * exact[0], OFFSET / 16)
    for value, expected in zip(found[2:], exact[2:], strict=True):
        _assert_near(value, expected, OFFSET * max(1, instances[0].numel()) ** 0.5)
