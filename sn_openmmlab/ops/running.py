"""The running statistics of `'bn'`."""

from typing import NamedTuple

import torch
from torch import Tensor

from sn_openmmlab.kernels.contract import Moments
from sn_openmmlab.ops.batch import BatchMoments


class Running(NamedTuple):
    """Running statistics, and how they move; without a number of batches they stay as they are.

    Attributes:
        mean: (C,).
        var: (C,).
        num_batches: the number of batches, a scalar, or None.
        momentum: the share of the new value, in [0, 1]; None for one over the number of batches.
    """

    mean: Tensor
    var: Tensor
    num_batches: Tensor | None = None
    momentum: float | None = None

    @property
    def moments(self) -> Moments:
        """Mean and variance."""
        return self.mean, self.var


@torch.no_grad()
def track(running: Running, observed: BatchMoments) -> None:
    """Count a batch and move the statistics towards its moments, unless it has no samples."""
    *moments, samples = observed
    counted = isinstance(samples, Tensor)
    if not counted and samples == 0:
        return
    running.num_batches.add_(samples > 0)
    # Not a comparison: a bool would turn the share into float32 for any type of statistics.
    seen = samples.clamp(max=1) if counted else 1
    for table, new in zip(running.moments, moments, strict=True):
        share = running.momentum
        if share is None:
            share = running.num_batches.clamp(min=1).to(table.dtype).reciprocal()
        move(table, new, share * seen)


def move(running: Tensor, new: Tensor, share: float) -> None:
    """Move `running` towards `new` by a share, in place.

    Args:
        running: (C,), of any floating-point type.
        new: (C,).
        share: the share of the new value, in [0, 1]: a number, or a scalar tensor of that type.
    """
    # Unlike lerp, this keeps a float16 variance that overflows at inf instead of NaN.
    running.mul_(1 - share).add_(new.to(running.dtype) * share)
