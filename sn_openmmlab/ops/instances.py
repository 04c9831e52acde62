"""The statistics of the input: only those that the mix reads."""

from collections.abc import Callable

import torch
from torch import Tensor

from sn_openmmlab.kernels.contract import Mixture, Moments
from sn_openmmlab.kernels.plain.moments import average


def instance_statistics(
    x: Tensor,
    mixture: Mixture,
    given: Moments | None,
    compute: Callable[[Tensor, int], Moments],
    dtype: torch.dtype,
) -> Moments:
    """Return mean and variance of each channel of each sample, as far as the mix reads them.

    Where `'bn'` is given and mixed alone, its moments stand for those of the instances, and the
    input is not read. Where only the variance is that of a given `'bn'`, the variances are 0.

    Args:
        x: (N, C, *).
        mixture: what is mixed.
        given: moments of `'bn'`, (C,) each, in place of those of the batch, or None.
        compute: returns the moments of the instances for `x` and the correction.
        dtype: the statistics' type.

    Returns:
        Mean and variance, (N, C) each, or (1, C) where the input was not read.
    """
    if given is not None and mixture.scopes == ('bn',):
        return tuple(table.to(dtype).unsqueeze(0) for table in given)
    if given is None or mixture.instance_variance:
        return compute(x, mixture.correction)
    flat = x.to(dtype)
    flat = flat.flatten(2) if x.dim() > 2 else flat.unsqueeze(-1)
    mean = average(flat, -1).squeeze(-1)
    return mean, torch.zeros_like(mean)
