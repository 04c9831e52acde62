"""The table of moments from which every scope is pooled."""

import torch
from torch import Tensor


def statistics_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the type in which the statistics of an input of type ``dtype`` are kept.

    float32 for half-precision inputs, whose squares overflow and whose sums lose digits.
    """
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def at_least_one(size: int) -> int:
    """Return ``size``, or 1 where it is less.

    Where ``torch.jit.trace`` records, sizes are tensors, and a comparison in Python would make the
    size of the example a constant of the recording.
    """
    if isinstance(size, Tensor):
        return size.clamp(min=1)
    return max(size, 1)


def average(table: Tensor, dim: int) -> Tensor:
    """Mean along ``dim``, which is kept with size 1; 0 where there is nothing to average."""
    return table.sum(dim, keepdim=True) / at_least_one(table.shape[dim])


def centre(table: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return the mean along ``dim``, which is kept with size 1, and the deviations from it.

    The sum of a mean is rounded, so the mean of equal numbers may differ from them, and over
    sqrt(ε) that is no small error. A second mean, of the small deviations, takes it away.
    """
    shift = average(table, dim).detach()
    deviation = table - shift
    rest = average(deviation, dim)
    return shift + rest, deviation - rest


def instance_moments(x: Tensor, correction: int) -> tuple[Tensor, Tensor]:
    """Mean and variance of each channel of each sample: the first line of Eq. 4.

    Args:
        x: (N, C, *), in the statistics' type.
        correction: the variance divides by the number of positions less ``correction`` (0: Eq. 2;
            1: the authors' code), but never by less than one.

    Returns:
        Mean and variance, (N, C) each. Both are 0 where there is no position to average.
    """
    flat = x.flatten(2) if x.dim() > 2 else x.unsqueeze(-1)
    mean, deviation = centre(flat, -1)
    var = deviation.square().sum(-1) / at_least_one(flat.shape[-1] - correction)
    return mean.squeeze(-1), var
