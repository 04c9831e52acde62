"""Pool the table of instance moments to the moments of a scope."""

from torch import Tensor

from sn_openmmlab.kernels.plain.moments import average, centre


def pool(mean: Tensor, var: Tensor, scope: str, num_groups: int) -> tuple[Tensor, Tensor]:
    """Pool the moments of instances to those of a scope: lines two and three of Eq. 4.

    The names stand here again because `torch.jit.script` cannot read the table of
    `sn_openmmlab.scopes`.

    Args:
        mean: (N, C).
        var: (N, C).
        scope: the name of the scope.
        num_groups: the number of groups of channels; only `'gn'` uses it.

    Returns:
        Mean and variance of the scope, each broadcastable to (N, C): (N, C) for `'in'` and `'gn'`,
        (N, 1) for `'ln'`, (1, C) for `'bn'`.

    Raises:
        ValueError: if the plain expression does not know the scope.
    """
    if scope == 'in':
        return mean, var
    if scope == 'ln':
        return _total_moments(mean, var, dim=1)
    if scope == 'bn':
        return _total_moments(mean, var, dim=0)
    if scope != 'gn':
        raise ValueError(f"scope '{scope}' has no branch in kernels/plain/scopes.py: add one.")
    samples, channels = mean.shape
    groups = (samples, num_groups, channels // num_groups)
    pooled = _total_moments(mean.reshape(groups), var.reshape(groups), dim=2)
    mean, var = pooled[0].expand(groups), pooled[1].expand(groups)
    return mean.reshape(samples, channels), var.reshape(samples, channels)


def batch_moments(mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and variance of `'bn'`, (C,) each, from those of the instances, (N, C)."""
    mean, var = pool(mean, var, 'bn', 1)
    return mean.squeeze(0), var.squeeze(0)


def _total_moments(mean: Tensor, var: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Apply the law of total variance along `dim`, which is kept with size 1.

    Like `aten/tables.py`, but differentiable, compiled by `torch.jit.script`, and without float64,
    which not every device has.
    """
    pooled, deviation = centre(mean, dim)
    return pooled, average(var + deviation.square(), dim)
