"""The table of instance moments, from which every scope is pooled."""

import torch
from torch import Tensor


def statistics_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the type in which the statistics of an input of type `dtype` are kept.

    It is float32 for half-precision inputs, whose squares overflow and whose sums lose digits.
    """
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def at_least_one(size: int) -> int:
    """Return `size`, or 1 where it is less.

    While `torch.jit.trace` records, sizes are tensors. A comparison in Python would then make the
    example's size a constant of the recording.
    """
    if isinstance(size, Tensor):
        return size.clamp(min=1)
    return max(size, 1)


def average(table: Tensor, dim: int) -> Tensor:
    """Return the mean along `dim`, which is kept with size 1; 0 where there is nothing."""
    return table.sum(dim, keepdim=True) / at_least_one(table.shape[dim])


def centre(table: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return the mean along `dim`, which is kept with size 1, and the deviations from it.

    The sum behind a mean is rounded, so the mean of equal numbers may differ from them. Divided by
    sqrt(ε) that is no small error. A second mean, of the small deviations, removes it.
    """
    shift = average(table, dim).detach()
    deviation = table - shift
    rest = average(deviation, dim)
    return shift + rest, deviation - rest


def instance_moments(x: Tensor, correction: int) -> tuple[Tensor, Tensor]:
    """Return mean and variance of each channel of each sample: the first line of Eq. 4.

    Args:
        x: (N, C, *), in the statistics' type.
        correction: the variance divides by the number of positions less this, at least by one (0:
            Eq. 2; 1: the authors' code).

    Returns:
        Mean and variance, (N, C) each; 0 where there are no positions.
    """
    flat = x.flatten(2) if x.dim() > 2 else x.unsqueeze(-1)
    mean, deviation = centre(flat, -1)
    var = deviation.square().sum(-1) / at_least_one(flat.shape[-1] - correction)
    return mean.squeeze(-1), var
