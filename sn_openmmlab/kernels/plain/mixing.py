"""The mix of the scopes' moments, and the normalization by it."""

import torch
from torch import Tensor

from sn_openmmlab.kernels.plain.scopes import pool


def normalize(
    x: Tensor,
    affine: tuple[Tensor | None, Tensor | None],
    controls: tuple[Tensor, Tensor],
    instances: tuple[Tensor, Tensor],
    batch_moments: tuple[Tensor, Tensor] | None,
    scopes: list[str],
    num_groups: int,
    eps: float,
) -> Tensor:
    """Normalize `x` by the mix of its scopes: Eq. 3 and 5.

    Args:
        x: (N, C, *), in the statistics' type, in which everything is computed.
        affine: γ and β, (C,) or None each.
        controls: λ and λ′, (number of scopes,) each; or (G, number of scopes) for G groups of
            channels with ratios of their own.
        instances: mean and variance of each channel of each sample, (N, C) each.
        batch_moments: mean and variance of `'bn'`, (C,) each; None only where it is not mixed.
        scopes: the scopes in the order of the control parameters.
        num_groups: the number of groups of `'gn'`.
        eps: ε.

    Returns:
        The output, (N, C, *), in the statistics' type.
    """
    dtype = x.dtype
    # Means are mixed as distances from the instance mean: then ratios that do not add up to exactly
    # 1 lose no digits of a large common offset.
    origin = instances[0]
    gaps, variances = [], []
    for scope in scopes:
        mean, var = instances
        if scope != 'bn':
            mean, var = pool(mean, var, scope, num_groups)
        elif batch_moments is not None:
            mean, var = batch_moments
            mean, var = mean.to(dtype).unsqueeze(0), var.to(dtype).unsqueeze(0)
        gaps.append(mean - origin)
        variances.append(var)
    channels = x.shape[1]
    centre = origin + _mix(controls[0].to(dtype), gaps, channels)
    scale = torch.rsqrt(_mix(controls[1].to(dtype), variances, channels) + eps)

    weight, bias = affine
    if weight is not None:
        scale = scale * weight.to(dtype)
    y = (x - _like(centre, x)) * _like(scale, x)
    if bias is not None:
        y = y + _like(bias.to(dtype).unsqueeze(0), x)
    return y


def _mix(control: Tensor, tables: list[Tensor], channels: int) -> Tensor:
    ratios = torch.softmax(control, -1)
    if ratios.dim() == 2:
        groups, scopes = ratios.shape
        per_group = ratios.unsqueeze(1).expand(groups, channels // groups, scopes)
        ratios = per_group.reshape(channels, scopes)
    mixed = ratios[..., 0] * tables[0]
    for k in range(1, len(tables)):
        mixed = mixed + ratios[..., k] * tables[k]
    return mixed


def _like(table: Tensor, x: Tensor) -> Tensor:
    """Return `table` with as many dimensions as `x`, the new ones of size 1."""
    for _ in range(x.dim() - 2):
        table = table.unsqueeze(-1)
    return table
