"""The scopes of Switchable Normalization: each one pools the table of instance moments."""

from torch import Tensor

from sn_openmmlab.kernels.plain.moments import average, centre

SCOPES = ('in', 'gn', 'ln', 'bn')


def pool(mean: Tensor, var: Tensor, scope: str, num_groups: int) -> tuple[Tensor, Tensor]:
    """Pool the moments of instances to those of a scope: lines two and three of Eq. 4.

    The variance is the law of total variance, ``pool(var) + pool((mean - pooled mean)**2)``: the
    value of Eq. 4 without its difference of two large numbers, and so never negative.

    Args:
        mean: (N, C).
        var: (N, C).
        scope: one of :data:`SCOPES`.
        num_groups: the number of groups of channels; only ``'gn'`` looks at it.

    Returns:
        Mean and variance of the scope, each broadcastable to (N, C): (N, C) for ``'in'`` and
        ``'gn'``, (N, 1) for ``'ln'``, (1, C) for ``'bn'``.
    """
    if scope == 'in':
        return mean, var
    if scope == 'ln':
        return _total_moments(mean, var, dim=1)
    if scope == 'bn':
        return _total_moments(mean, var, dim=0)
    samples, channels = mean.shape
    groups = (samples, num_groups, channels // num_groups)
    pooled = _total_moments(mean.reshape(groups), var.reshape(groups), dim=2)
    mean, var = pooled[0].expand(groups), pooled[1].expand(groups)
    return mean.reshape(samples, channels), var.reshape(samples, channels)


def _total_moments(mean: Tensor, var: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    pooled, deviation = centre(mean, dim)
    return pooled, average(var + deviation.square(), dim)
