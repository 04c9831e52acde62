"""Switchable Normalization as one plain expression, differentiated by autograd."""

from collections.abc import Sequence

import torch
from torch import Tensor

from sn_openmmlab.ops.moments import instance_moments, statistics_dtype
from sn_openmmlab.ops.scopes import pool

Moments = tuple[Tensor, Tensor]


def switch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean_weight: Tensor,
    var_weight: Tensor,
    *,
    scopes: Sequence[str],
    num_groups: int,
    correction: int,
    eps: float,
    batch_moments: Moments | None = None,
) -> tuple[Tensor, Moments | None]:
    """Normalize ``x`` by a mix of the statistics of several scopes (Eq. 3 to 5).

    Args:
        x: (N, C, *), any floating-point type. N and the positions may be zero.
        weight: γ, (C,), or None for 1.
        bias: β, (C,), or None for 0.
        mean_weight: λ, (number of scopes,), the control parameters of the means.
        var_weight: λ′, (number of scopes,), those of the variances.
        scopes: the scopes in the order of the control parameters.
        num_groups: the number of groups of ``'gn'``.
        correction: see :func:`~sn_openmmlab.ops.moments.instance_moments`.
        eps: ε of Eq. 3, added to the mixed variance.
        batch_moments: mean and variance of ``'bn'``, (C,) each, in place of those of this batch.

    Returns:
        The output, in the shape and type of ``x``, and the batch's own mean and variance of
        ``'bn'``, (C,) each and detached; None where they were given or no scope needs them.
    """
    values = x.to(statistics_dtype(x.dtype))
    instances = instance_moments(values, correction)
    moments = {}
    for scope in scopes:
        if scope == 'bn' and batch_moments is not None:
            moments[scope] = tuple(table.to(values.dtype).unsqueeze(0) for table in batch_moments)
        else:
            moments[scope] = pool(*instances, scope, num_groups)
    # The mix of their distances from one of them: ratios add up to 1 only up to rounding, and that
    # much of a large common offset would be no small error.
    origin = instances[0]
    gaps = [moments[scope][0] - origin for scope in scopes]
    mean = origin + _mix(mean_weight.to(values.dtype), gaps)
    var = _mix(var_weight.to(values.dtype), [moments[scope][1] for scope in scopes])

    scale = torch.rsqrt(var + eps)
    if weight is not None:
        scale = scale * weight.to(values.dtype)
    y = (values - _like(mean, x)) * _like(scale, x)
    if bias is not None:
        y = y + _like(bias.to(values.dtype).unsqueeze(0), x)

    observed = None
    if 'bn' in scopes and batch_moments is None:
        observed = tuple(table.detach().squeeze(0) for table in moments['bn'])
    return y.to(x.dtype), observed


def _mix(control: Tensor, tables: list[Tensor]) -> Tensor:
    ratios = torch.softmax(control, 0)
    return sum(ratio * table for ratio, table in zip(ratios, tables, strict=True))


def _like(table: Tensor, x: Tensor) -> Tensor:
    return table.reshape(table.shape + (1,) * (x.dim() - 2))
