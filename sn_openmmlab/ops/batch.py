"""The moments of the batch: of this process, or of a group of processes by one all-reduce."""

from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import ProcessGroup


class BatchMoments(NamedTuple):
    """Mean and variance of the scope ``'bn'``, (C,) each, and the number of samples behind them.

    The number is a scalar tensor where it was counted over processes.
    """

    mean: Tensor
    var: Tensor
    samples: int | Tensor


def count_samples(x: Tensor) -> int | Tensor:
    """Return the number of samples of ``x`` that have positions.

    A scalar tensor where ``torch.jit.trace`` records, so that the recording counts anew.
    """
    numbers = x.numel()
    if isinstance(numbers, Tensor):
        return x.shape[0] * numbers.clamp(max=1)
    return x.shape[0] if numbers > 0 else 0


def merge_ranks(own: BatchMoments, group: ProcessGroup, anchor: Tensor | None) -> BatchMoments:
    """Pool the moments of all ranks of ``group``, each weighted by its number of samples.

    Every rank puts its moments into a row of its own and the rows are summed: one all-reduce hands
    every rank all rows, from which it takes the total variance without a difference of large
    numbers. A rank without samples weighs nothing.

    Args:
        own: the moments of this rank; finite where it has no samples.
        group: the process group.
        anchor: a tensor that needs gradients, so that autograd, to any order, goes through the
            all-reduce on every rank, also where the moments need none; None to leave autograd out.

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
    shares = samples / samples.sum().clamp(min=1)
    mean = (shares * means).sum(0)
    var = (shares * (variances + (means - mean).square())).sum(0)
    return BatchMoments(mean, var, samples.sum())


def average_gradients(
    sums: tuple[Tensor, Tensor], samples: int | Tensor, group: ProcessGroup | None
) -> tuple[Tensor, Tensor]:
    """Divide two (C,) tables by ``samples``, after summing them over the ranks of ``group``."""
    if group is not None:
        stacked = torch.stack(sums)
        dist.all_reduce(stacked, group=group)
        sums = stacked.unbind()
    samples = max(samples, 1) if isinstance(samples, int) else samples.clamp(min=1)
    return sums[0] / samples, sums[1] / samples


class _SumOverRanks(torch.autograd.Function):
    """The sum of a table over the ranks of a group; the gradient is summed likewise."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, group: ProcessGroup, _: Tensor | None) -> Tensor:
        ctx.group = group
        total = table.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx: Any, d_total: Tensor) -> tuple[Tensor, None, None]:
        return _SumOverRanks.apply(d_total, ctx.group, None), None, None
