"""Moments of the batch: of this process, or of a process group by one all-reduce."""

from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import ProcessGroup

from sn_openmmlab.kernels.contract import Moments
from sn_openmmlab.kernels.merge import merge_moments


class BatchMoments(NamedTuple):
    """Mean and variance of the scope `'bn'`, and the number of samples behind them.

    Attributes:
        mean: (C,).
        var: (C,).
        samples: the number; a scalar tensor where it was counted over processes.
    """

    mean: Tensor
    var: Tensor
    samples: int | Tensor


def observe(
    own: Moments, x: Tensor, group: ProcessGroup | None, anchor: Tensor | None = None
) -> BatchMoments:
    """Return the moments of the batch, pooled over the ranks of `group` where there is one.

    Args:
        own: mean and variance of `'bn'` on this rank, (C,) each.
        x: the batch of this rank, (N, C, *).
        group: the process group, or None for this process alone.
        anchor: see `merge_ranks`.
    """
    observed = BatchMoments(*own, count_samples(x))
    return observed if group is None else merge_ranks(observed, group, anchor)


def observe_ranks(
    own: Tensor, x: Tensor, group: ProcessGroup | None
) -> tuple[Tensor, int | Tensor]:
    """Return what `observe` does for a table of both moments, (2, C), and the number of samples."""
    if group is None:
        return own, count_samples(x)
    *moments, samples = observe(tuple(own), x, group)
    return torch.stack(moments), samples


def count_samples(x: Tensor) -> int | Tensor:
    """Return the number of samples of `x`, or 0 where they have no positions.

    While `torch.jit.trace` records it is a scalar tensor, so that the recording counts anew.
    """
    numbers = x.numel()
    if isinstance(numbers, Tensor):
        return x.shape[0] * numbers.clamp(max=1)
    return x.shape[0] if numbers > 0 else 0


def merge_ranks(own: BatchMoments, group: ProcessGroup, anchor: Tensor | None) -> BatchMoments:
    """Pool the moments of all ranks of `group`, each weighted by its number of samples.

    Every rank fills its own row of a table of zeros. One all-reduce sums the tables, so that every
    rank has all rows and merges them. A rank without samples has no weight.

    Args:
        own: the moments of this rank; finite where it has no samples.
        group: the process group.
        anchor: a tensor that requires gradients, or None to leave autograd out. With it autograd,
            to any order, goes through the all-reduce on every rank, even on a rank whose moments
            require no gradients.

    Returns:
        The moments of all ranks, in float64; zero where no rank has a sample.
    """
    count = own.mean.new_full((1,), float(own.samples), dtype=torch.float64)
    row = torch.cat([count, own.mean.double(), own.var.double()])
    place = torch.arange(dist.get_world_size(group), device=row.device) == dist.get_rank(group)
    rows = torch.where(place.unsqueeze(1), row, 0.0)
    if anchor is not None:
        rows = _SumOverRanks.apply(rows, group, anchor)
    else:
        dist.all_reduce(rows, group=group)
    samples = rows[:, :1].detach()
    means, variances = rows[:, 1:].chunk(2, dim=1)
    count = samples.sum()
    return BatchMoments(*merge_moments(means, variances, samples / count.clamp(min=1)), count)


def average_gradients(sums: Tensor, samples: int | Tensor, group: ProcessGroup | None) -> Tensor:
    """Divide tables, (2, C), by `samples`, after summing them over the ranks of `group`."""
    if group is not None:
        sums = sums.clone()
        dist.all_reduce(sums, group=group)
    return sums / (max(samples, 1) if isinstance(samples, int) else samples.clamp(min=1))


class _SumOverRanks(torch.autograd.Function):
    """Sum a table over the ranks of a group, and the gradient likewise."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, group: ProcessGroup, _: Tensor | None) -> Tensor:
        ctx.group = group
        total = table.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx: Any, d_total: Tensor) -> tuple[Tensor, None, None]:
        return _SumOverRanks.apply(d_total, ctx.group, None), None, None
