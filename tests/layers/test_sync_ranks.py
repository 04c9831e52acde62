"""SyncSN in two and three processes against the paper's formulas on the whole batch."""

from itertools import combinations
from typing import NamedTuple

import pytest
import torch
import torch.distributed as dist

from sn_openmmlab import SwitchNorm, SyncSwitchNorm
from sn_openmmlab.ops.backends import use_backend
from tests.backends import BUILT

CHANNELS, POSITIONS = 4, (3, 2)
OTHERS = ('in', 'gn', 'ln')
SCOPES = [(*others, 'bn') for count in range(4) for others in combinations(OTHERS, count)]


class Case(NamedTuple):
    """The settings of a layer, and how many samples each rank holds."""

    samples: tuple[int, ...]
    scopes: tuple[str, ...] = ('in', 'ln', 'bn')
    correction: int = 0
    backend: str = 'aten'
    channels_last: bool = False
    momentum: float | None = 0.1
    affine: bool = True


def _cases():
    for backend in BUILT:
        for correction in (0, 1):
            for scopes in SCOPES:
                yield Case((1, 3), scopes, correction, backend)
            yield Case((1, 2, 3), correction=correction, backend=backend)
        for samples in ((2, 2), (3, 0), (0, 1), (1, 1), (2, 0, 1), (0, 0, 4), (2, 2, 2)):
            yield Case(samples, backend=backend)
        yield Case((2, 1), backend=backend, channels_last=True)
        yield Case((1, 2), backend=backend, momentum=None)
        yield Case((2, 1), backend=backend, affine=False)


CASES = list(_cases())
PAIR, ALONE = Case((1, 3)), Case((2,))


def _layer(kind, case):
    torch.manual_seed(1)
    layer = kind(
        CHANNELS,
        scopes=case.scopes,
        num_groups=2,
        correction=case.correction,
        momentum=case.momentum,
        affine=case.affine,
        dtype=torch.float64,
    )
    with torch.no_grad():
        for tensor in layer.parameters():
            tensor.copy_(torch.randn(tensor.shape))
        layer.running_mean.copy_(torch.randn(CHANNELS))
    return layer


def _batch(case):
    """Return the whole batch, far from zero, and the gradient of its output."""
    torch.manual_seed(2)
    shape = (sum(case.samples), CHANNELS, *POSITIONS)
    return torch.randn(shape, dtype=torch.float64) + 5, torch.randn(shape, dtype=torch.float64)


def _outcome(case, rank, process_group=None):
    """Return the results of one rank for its part of the batch."""
    layer = _layer(SyncSwitchNorm, case)
    layer.process_group = process_group
    x, grad = (part.split(case.samples)[rank] for part in _batch(case))
    if case.channels_last:
        x = x.contiguous(memory_format=torch.channels_last)
    x = x.detach().requires_grad_()
    with use_backend(case.backend):
        y = layer(x)
    y.backward(grad)
    found = {name: parameter.grad for name, parameter in layer.named_parameters()}
    return {'y': y.detach(), 'x': x.grad, **found, **dict(layer.named_buffers())}


def on_rank(rank, world):
    found = [_outcome(case, rank) for case in CASES if len(case.samples) == world]
    if world == 3:
        group = dist.new_group([0, 1])
        found.append(_outcome(ALONE, 0, group) if rank == 2 else _outcome(PAIR, rank, group))
    return found


@pytest.fixture(scope='module')
def worlds(run_ranks):
    """Return the results of the ranks, of two and of three processes."""
    return {world: run_ranks(__file__, world) for world in (2, 3)}


@pytest.fixture(scope='module')
def check(paper, outcome):
    """Return a function that checks the ranks' results of a case, and that they agree."""
    return lambda case, ranks: _check(_expected(case, paper, outcome), case, ranks)


@pytest.mark.parametrize('case', CASES, ids=lambda case: '-'.join(map(str, case)))
def test_ranks_together_are_one_process_on_the_whole_batch(case, worlds, check):
    world = len(case.samples)
    index = [case for case in CASES if len(case.samples) == world].index(case)
    check(case, [rank[index] for rank in worlds[world]])


def test_a_group_of_two_in_three_processes_pools_over_itself_alone(worlds, check):
    first, second, left_out = (rank[-1] for rank in worlds[3])
    check(PAIR, [first, second])
    check(ALONE, [left_out])


def _expected(case, paper, outcome):
    layer = _layer(SwitchNorm, case)
    batch, grad = _batch(case)
    expected = outcome(layer, batch, grad, paper)
    instances = batch.flatten(2)
    means, vars_ = instances.mean(2), instances.var(2, correction=case.correction)
    share = 1 if case.momentum is None else case.momentum
    for name, new in (
        ('running_mean', means.mean(0)),
        ('running_var', (vars_ + means.square()).mean(0) - means.mean(0).square()),
    ):
        expected[name] = (1 - share) * getattr(layer, name) + share * new
    return expected


def _check(expected, case, ranks):
    assert [len(rank['y']) for rank in ranks] == list(case.samples)
    found = {name: torch.cat([rank[name] for rank in ranks]) for name in ('y', 'x')}
    for name in ('running_mean', 'running_var', 'num_batches_tracked'):
        found[name] = ranks[0][name]
        assert all(torch.equal(rank[name], found[name]) for rank in ranks)
    assert found.pop('num_batches_tracked') == 1
    for name in expected.keys() - found.keys():
        found[name] = sum(rank[name] for rank in ranks)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)
