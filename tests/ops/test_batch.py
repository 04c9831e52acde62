"""Moments pooled over ranks against those of all samples, with the processes run in turn."""

import pytest
import torch
import torch.distributed as dist

from sn_openmmlab.ops.batch import BatchMoments, average_gradients, merge_ranks


@pytest.fixture
def by_turns(monkeypatch):
    """Return a function (one call per rank) -> their results; an all-reduce sums over all calls.

    Every call runs twice: first to record what each rank sends, then to give each rank the sum.
    """

    def run(calls):
        sent = []
        monkeypatch.setattr(dist, 'get_world_size', lambda group: len(calls))
        monkeypatch.setattr(dist, 'all_reduce', lambda table, group: sent.append(table.clone()))
        for rank, call in enumerate(calls):
            monkeypatch.setattr(dist, 'get_rank', lambda group, rank=rank: rank)
            call()
        total = sum(sent)
        monkeypatch.setattr(dist, 'all_reduce', lambda table, group: table.copy_(total))
        results = []
        for rank, call in enumerate(calls):
            monkeypatch.setattr(dist, 'get_rank', lambda group, rank=rank: rank)
            results.append(call())
        return results

    return run


def _moments(samples, dtype):
    """Return the moments of (N, C) samples; zero where there are none."""
    if len(samples) == 0:
        return BatchMoments(*torch.zeros(2, samples.shape[1], dtype=dtype), 0)
    mean, var = samples.mean(0), samples.var(0, correction=0)
    return BatchMoments(mean.to(dtype), var.to(dtype), len(samples))


def _merged(by_turns, ranks, differentiable=False):
    anchor = torch.zeros(1, dtype=torch.float64, requires_grad=True) if differentiable else None
    return by_turns([lambda own=own: merge_ranks(own, 'group', anchor) for own in ranks])


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
@pytest.mark.parametrize('differentiable', [False, True])
@pytest.mark.parametrize('counts', [(3,), (2, 2), (1, 5), (0, 4), (3, 0, 1), (0, 0, 7)])
def test_the_moments_are_those_of_all_samples(counts, differentiable, dtype, by_turns):
    torch.manual_seed(0)
    samples = torch.randn(sum(counts), 4, dtype=torch.float64) * 2 + 1
    ranks = [_moments(part, dtype) for part in samples.split(counts)]

    for found in _merged(by_turns, ranks, differentiable):
        mean, var, count = found
        assert count == sum(counts)
        assert mean.dtype == var.dtype == torch.float64
        tolerance = dict(rtol=1e-6, atol=1e-6) if dtype == torch.float32 else {}
        torch.testing.assert_close(mean, samples.mean(0), **tolerance)
        torch.testing.assert_close(var, samples.var(0, correction=0), **tolerance)


def test_a_large_offset_costs_the_variance_no_digits(by_turns):
    low = torch.full((3,), 1e8, dtype=torch.float64)
    high, ones = low + 2, torch.ones_like(low)

    for found in _merged(by_turns, [BatchMoments(low, ones, 2), BatchMoments(high, ones, 2)]):
        torch.testing.assert_close(found.mean, low + 1, rtol=0, atol=0)
        torch.testing.assert_close(found.var, 2 * ones, rtol=0, atol=0)


def test_no_samples_anywhere_give_zeros(by_turns):
    nothing = _moments(torch.zeros(0, 4), torch.float32)
    for found in _merged(by_turns, [nothing, nothing]):
        assert not found.mean.any() and not found.var.any() and found.samples == 0


@pytest.mark.parametrize('fault', [float('nan'), float('inf'), float('-inf')])
def test_a_fault_of_one_rank_reaches_all_in_its_channel_alone(fault, by_turns):
    torch.manual_seed(0)
    ranks = [_moments(torch.randn(3, 4), torch.float32) for _ in range(3)]
    ranks[1].mean[2] = fault

    for found in _merged(by_turns, ranks):
        assert found.mean.isfinite().tolist() == [True, True, False, True]
        assert found.var.isfinite().tolist() == [True, True, False, True]


def test_gradients_are_averaged_over_the_samples_of_all_ranks(by_turns):
    torch.manual_seed(0)
    tables = torch.randn(3, 2, 4, dtype=torch.float64)
    calls = [
        lambda sums=sums: average_gradients(sums, torch.tensor(7.0).double(), 'group')
        for sums in tables
    ]

    for found in by_turns(calls):
        torch.testing.assert_close(found, tables.sum(0) / 7)


@pytest.mark.parametrize(('samples', 'divisor'), [(4, 4), (0, 1)])
def test_without_a_group_nothing_is_sent(samples, divisor, monkeypatch):
    monkeypatch.delattr(dist, 'all_reduce')
    sums = torch.tensor([[1.0, 1.0], [2.0, 2.0]])

    found = average_gradients(sums, samples, None)

    torch.testing.assert_close(found, sums / divisor)
