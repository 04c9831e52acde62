"""Switchable Normalization as one plain expression, differentiated by autograd to any order."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

from sn_openmmlab.kernels.mixture import Mixture
from sn_openmmlab.ops.batch import BatchMoments, merge_ranks
from sn_openmmlab.ops.moments import instance_moments, statistics_dtype
from sn_openmmlab.ops.scopes import pool

Moments = tuple[Tensor, Tensor]


def plain_switch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean_weight: Tensor,
    var_weight: Tensor,
    *,
    mixture: Mixture,
    correction: int,
    batch_moments: Moments | None,
    group: ProcessGroup | None,
) -> tuple[Tensor, BatchMoments | None]:
    """Normalize ``x``: see :func:`sn_openmmlab.ops.switch_norm.switch_norm`."""
    values = x.to(statistics_dtype(x.dtype))
    instances = instance_moments(values, correction)
    observe = partial(_observe, x=x, group=group, anchor=mean_weight)
    moments, observed = _scope_moments(instances, mixture, batch_moments, observe)
    # The mix of their distances from one of them: ratios add up to 1 only up to rounding, and that
    # much of a large common offset would be no small error.
    origin = instances[0]
    gaps = [mean - origin for mean, _ in moments]
    mean = origin + _mix(mean_weight.to(values.dtype), gaps)
    var = _mix(var_weight.to(values.dtype), [var for _, var in moments])

    scale = torch.rsqrt(var + mixture.eps)
    if weight is not None:
        scale = scale * weight.to(values.dtype)
    y = (values - _like(mean, x)) * _like(scale, x)
    if bias is not None:
        y = y + _like(bias.to(values.dtype).unsqueeze(0), x)
    return y.to(x.dtype), observed


def _scope_moments(
    instances: Moments,
    mixture: Mixture,
    batch_moments: Moments | None,
    observe: Callable[[Moments], BatchMoments],
) -> tuple[list[Moments], BatchMoments | None]:
    observed = None
    moments = []
    for scope in mixture.scopes:
        if scope == 'bn' and batch_moments is not None:
            pooled = tuple(table.to(instances[0].dtype).unsqueeze(0) for table in batch_moments)
        else:
            pooled = pool(*instances, scope, mixture.num_groups)
        if scope == 'bn' and batch_moments is None:
            observed = observe(pooled)
            pooled = tuple(table.to(instances[0].dtype).unsqueeze(0) for table in observed[:2])
            observed = BatchMoments(observed.mean.detach(), observed.var.detach(), observed.samples)
        moments.append(pooled)
    return moments, observed


def _observe(
    pooled: Moments, x: Tensor, group: ProcessGroup | None, anchor: Tensor
) -> BatchMoments:
    samples = x.shape[0] if x.numel() > 0 else 0
    observed = BatchMoments(pooled[0].squeeze(0), pooled[1].squeeze(0), samples)
    return observed if group is None else merge_ranks(observed, group, anchor)


def _mix(control: Tensor, tables: list[Tensor]) -> Tensor:
    ratios = torch.softmax(control, 0)
    return sum(ratio * table for ratio, table in zip(ratios, tables, strict=True))


def _like(table: Tensor, x: Tensor) -> Tensor:
    return table.reshape(table.shape + (1,) * (x.dim() - 2))
