"""Batch average in two and three processes, against the averages over all their batches."""

import pytest
import torch
import torch.distributed as dist
from torch import nn

from sn_openmmlab import SwitchNorm, SyncSwitchNorm
from sn_openmmlab.layers.batch_average import batch_average

# The samples of each step's batch, by rank.
SAMPLES = [[(4, 1), (2, 3), (0, 2)], [(1, 2, 3), (2, 0, 0)]]
KINDS = ['sn', 'sync', 'bn']


def _layers():
    sync = SyncSwitchNorm(3, process_group=dist.group.WORLD if dist.is_initialized() else None)
    layers = {'sn': SwitchNorm(3), 'sync': sync, 'bn': nn.BatchNorm2d(3)}
    return nn.ModuleDict({**layers, 'unused': SwitchNorm(3)}).double()


def _steps(samples):
    """Return the whole batch of each step, split by rank."""
    torch.manual_seed(0)
    whole = [
        k + (k + 1) * torch.randn(sum(step), 3, 2, 3).double() for k, step in enumerate(samples)
    ]
    return [x.split(step) for x, step in zip(whole, samples, strict=True)]


def on_rank(rank, world):
    (samples,) = (steps for steps in SAMPLES if len(steps[0]) == world)
    found = []
    for variance in ('mean', 'pooled'):
        model = _layers()
        batches = [step[rank] for step in _steps(samples)]
        batch_average(
            model,
            batches,
            lambda copied, x: [copied[kind](x) for kind in KINDS],
            variance=variance,
            batch_norm=True,
        )
        found.append(dict(model.named_buffers()))
    return found


@pytest.fixture(scope='module', params=SAMPLES, ids=['two ranks', 'three ranks'])
def ranks(request, run_ranks):
    """Return the steps' batches by rank, and what the ranks found."""
    return _steps(request.param), run_ranks(__file__, len(request.param[0]))


def _calls(kind, steps):
    """Return the batches that the layer normalizes by: those of ranks alone, or of all together."""
    if kind == 'sync':
        return [torch.cat(step) for step in steps]
    return [x for step in steps for x in step if len(x) > 0]


@pytest.mark.parametrize('variance', ['mean', 'pooled'])
@pytest.mark.parametrize('kind', KINDS)
def test_all_ranks_have_the_averages_over_all_batches(variance, kind, ranks):
    steps, found = ranks
    calls = _calls(kind, steps)
    shares = [len(x) / sum(map(len, calls)) for x in calls]
    moments = [torch.var_mean(x, (0, 2, 3), correction=int(kind == 'bn')) for x in calls]
    mean = sum(share * mean for share, (_, mean) in zip(shares, moments, strict=True))
    var = sum(share * var for share, (var, _) in zip(shares, moments, strict=True))
    if variance == 'pooled':
        var += sum(
            share * (own - mean).square() for share, (_, own) in zip(shares, moments, strict=True)
        )
    for buffers in (rank[['mean', 'pooled'].index(variance)] for rank in found):
        torch.testing.assert_close(buffers[f'{kind}.running_mean'], mean)
        torch.testing.assert_close(buffers[f'{kind}.running_var'], var)
        assert torch.equal(buffers['unused.running_var'], torch.ones(3).double())


def test_ranks_agree_bit_for_bit(ranks):
    _, (first, *others) = ranks
    for other in others:
        torch.testing.assert_close(other, first, rtol=0, atol=0)
