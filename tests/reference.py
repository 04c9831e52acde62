"""Eq. 2 to 5 of the paper written out, in the type of their input: the reference for all tests.

Nothing here is derived from the code under test. Moments are taken over the set I_k of pixels that
Eq. 2 names, not pooled, and a correction of 1 follows Eq. 4 as the authors' code has it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class BatchMoments(NamedTuple):
    """Mean and variance of `'bn'`, (C,) each, and the number of samples."""

    mean: Tensor
    var: Tensor
    samples: int


def scope_moments(
    x: Tensor, scope: str, *, num_groups: int = 1, correction: int = 0
) -> tuple[Tensor, Tensor]:
    """Return μ_k and σ_k² of Eq. 2 for every channel of every sample.

    Args:
        x: (N, C, *).
        scope: `'in'`, `'gn'`, `'ln'` or `'bn'`.
        num_groups: the number of groups of `'gn'`.
        correction: 1 divides the instance variance by one less. As the variance of a scope is
            linear in those of its instances (Eq. 4), that adds their mean over (positions - 1).

    Returns:
        Mean and variance, (N, C) each.
    """
    samples, channels = x.shape[:2]
    h = x.reshape(samples, channels, -1)
    positions = h.shape[2]
    if scope == 'gn':
        h = h.reshape(samples, num_groups, -1, positions)
    dims = {'in': (-1,), 'gn': (-2, -1), 'ln': (-2, -1), 'bn': (0, -1)}[scope]
    mean = h.mean(dims, keepdim=True)
    var = (h - mean).square().mean(dims, keepdim=True)
    if correction and positions > 1:
        instances = (h - h.mean(-1, keepdim=True)).square().mean(-1, keepdim=True)
        var = var + instances.mean(dims, keepdim=True) / (positions - 1)
    shape = (*h.shape[:-1], 1)
    return tuple(table.expand(shape).reshape(samples, channels) for table in (mean, var))


def mixed_moments(
    x: Tensor,
    mean_weight: Tensor,
    var_weight: Tensor,
    *,
    scopes: Sequence[str],
    num_groups: int,
    correction: int,
    batch_moments: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Return the mixed mean and variance of Eq. 3 and 5, and each scope's mean, (N, C) each.

    `batch_moments`, (C,) each, replace the moments of `'bn'`.
    """
    means, variances = [], []
    for scope in scopes:
        moments = scope_moments(x, scope, num_groups=num_groups, correction=correction)
        if scope == 'bn' and batch_moments is not None:
            moments = [table.expand(x.shape[:2]) for table in batch_moments]
        means.append(moments[0])
        variances.append(moments[1])
    return _mix(mean_weight, means), _mix(var_weight, variances), means


def switch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean_weight: Tensor,
    var_weight: Tensor,
    *,
    eps: float,
    **options: Any,
) -> tuple[Tensor, BatchMoments | None]:
    """Normalize `x` by Eq. 3, as the op of that name; the options are those of `mixed_moments`."""
    mean, var, _ = mixed_moments(x, mean_weight, var_weight, **options)
    y = (x - like(mean, x)) / like((var + eps).sqrt(), x)
    if weight is not None:
        y = y * like(weight[None], x)
    if bias is not None:
        y = y + like(bias[None], x)
    if options.get('batch_moments') is not None or 'bn' not in options['scopes']:
        return y, None
    tables = scope_moments(x.detach(), 'bn', correction=options['correction'])
    return y, BatchMoments(*(table[0] for table in tables), x.shape[0])


def switch_norm_layer(layer: nn.Module, x: Tensor) -> Tensor:
    """Normalize `x` with the parameters, settings and mode of an SN layer, in float64."""
    assert x.dtype == layer.mean_weight.dtype == torch.float64
    given = layer.track_running_stats and not layer.training
    y, _ = switch_norm(
        x,
        layer.weight,
        layer.bias,
        layer.mean_weight,
        layer.var_weight,
        scopes=layer.scopes,
        num_groups=layer.num_groups,
        correction=layer.correction,
        eps=layer.eps,
        batch_moments=(layer.running_mean, layer.running_var) if given else None,
    )
    return y


def _mix(control: Tensor, tables: Sequence[Tensor]) -> Tensor:
    """Mix (N, C) tables by the ratios of λ, (K,), or (G, K) for G groups of channels."""
    if control.dim() == 2:
        split = [table.chunk(len(control), dim=1) for table in tables]
        groups = zip(control, *split, strict=True)
        return torch.cat([_mix(own, group) for own, *group in groups], dim=1)
    ratios = torch.softmax(control, 0)
    return sum(ratio * table for ratio, table in zip(ratios, tables, strict=True))


def like(table: Tensor, x: Tensor) -> Tensor:
    """Return an (N, C) or (1, C) table with as many dimensions as `x`."""
    return table.reshape(*table.shape, *[1] * (x.dim() - 2))
