"""The statistics of the input: only those that the mix reads."""

import torch
from torch import Tensor

from sn_openmmlab.kernels.contract import Mixture, Moments
from sn_openmmlab.kernels.plain.moments import average, instance_moments


def instance_statistics(values: Tensor, mixture: Mixture, given: Moments | None) -> Moments:
    """Return mean and variance of each channel of each sample, as far as the mix reads them.

    Where `'bn'` is given and mixed alone, its moments stand for those of the instances, and the
    input is not read. Where only the variance is that of a given `'bn'`, the variances are 0.

    Args:
        values: the input, (N, C, *), in the statistics' type.
        mixture: what is mixed.
        given: moments of `'bn'`, (C,) each, in place of those of the batch, or None.

    Returns:
        Mean and variance, (N, C) each, or (1, C) where the input was not read.
    """
    if given is not None and mixture.scopes == ('bn',):
        return tuple(table.to(values.dtype).unsqueeze(0) for table in given)
    if given is None or mixture.instance_variance:
        return instance_moments(values, mixture.correction)
    flat = values.flatten(2) if values.dim() > 2 else values.unsqueeze(-1)
    mean = average(flat, -1).squeeze(-1)
    return mean, torch.zeros_like(mean)
