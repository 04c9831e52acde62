"""The arithmetic between the passes, on (N, C) tables.

With P_k for the average over what a scope pools, the scope's moments are

    μ_k = P_k μ        σ_k² = P_k (σ² + (μ - μ_k)²)

and the layer normalizes by their mixes (Eq. 3 to 5). Since P_k is symmetric and P_k (μ - μ_k) = 0,
the gradients of the mixes pass to the instances' moments as

    dμ = Σ w_k P_k d_centre + 2 Σ w′_k (μ - μ_k) P_k d_var        dσ² = Σ w′_k P_k d_var

Means are pooled in float64 and mixed as distances from the instance mean: neither rounded sums nor
ratios that add up to 1 only nearly then cost digits of a large common offset.
"""

import torch
from torch import Tensor

from sn_openmmlab.kernels.contract import Mixture

Moments = tuple[Tensor, Tensor]


def batch_moments(mean: Tensor, var: Tensor) -> Moments:
    """Mean and variance of ``'bn'`` from those of the instances, (C,) each."""
    pooled, variance, _ = _pool(mean, var, 'bn', 1)
    return pooled.squeeze(0), variance.squeeze(0)


def mix(
    mean: Tensor,
    var: Tensor,
    batch: Moments,
    controls: Moments,
    mixture: Mixture,
) -> tuple[Tensor, Tensor]:
    """Return the mixed mean and ``1 / sqrt(mixed variance + ε)``, (N, C) each.

    Args:
        mean: of the instances, (N, C).
        var: of the instances, (N, C).
        batch: moments of ``'bn'``, (C,) each, or None twice where no scope needs them.
        controls: λ and λ′, (number of scopes,) each.
        mixture: the scopes, groups and ε.
    """
    mean_ratios, var_ratios = _ratios(controls, mean.dtype)
    centre, mixed = mean, None
    for k, scope in enumerate(mixture.scopes):
        _, scope_var, gap = _moments(mean, var, batch, scope, mixture.num_groups)
        if gap is not None:
            centre = torch.addcmul(centre, gap, mean_ratios[k], value=-1)
        share = scope_var * var_ratios[k]
        mixed = share if mixed is None else mixed + share
    rstd = mixed.add(mixture.eps).rsqrt_()
    return centre.clone() if centre is mean else centre, rstd.expand(mean.shape).contiguous()


def channel_gradients(
    total: Tensor, dot: Tensor, rstd: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor, Moments]:
    """Return the gradients of γ and β, and the sums over N of those of both mixes, (C,) each.

    Args:
        total: ``Σ dy`` over the positions, (N, C).
        dot: ``Σ dy·(x - centre)`` over the positions, (N, C).
        rstd: see :func:`mix`.
        weight: γ, (C,), or None for 1.
    """
    d_centre, d_var = _mix_gradients(total, dot, rstd, weight)
    return (dot * rstd).sum(0), total.sum(0), (d_centre.sum(0), d_var.sum(0))


def position_gradients(
    sums: Moments,
    instances: Moments,
    mixed: Moments,
    batch: Moments,
    batch_gradients: Moments | None,
    weight: Tensor | None,
    controls: Moments,
    mixture: Mixture,
    positions: tuple[int, int],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return what the statistics add to the gradient of ``x``, and the gradients of λ and λ′.

    Args:
        sums: ``total`` and ``dot`` of :func:`channel_gradients`.
        instances: mean and variance of the instances, (N, C) each.
        mixed: the results of :func:`mix`.
        batch: moments of ``'bn'``, (C,) each, or None twice.
        batch_gradients: the average over all samples of the gradients of both mixes, (C,) each;
            None where the moments of ``'bn'`` do not depend on the input.
        weight: γ, (C,), or None for 1.
        controls: λ and λ′.
        mixture: the scopes, groups and ε.
        positions: the number of positions, and the correction of the instances' variance.

    Returns:
        ``slope`` and ``offset`` of ``(x - centre) * slope + offset``, (N, C) each, in the type of
        the instances' moments, and the gradients of λ and λ′.
    """
    mean, var = instances
    gradients = _mix_gradients(*sums, mixed[1], weight)
    ratios = _ratios(controls, mean.dtype)
    d_ratios = [torch.zeros_like(ratio) for ratio in ratios]
    d_mean, d_var = torch.zeros_like(mean), torch.zeros_like(var)
    for k, scope in enumerate(mixture.scopes):
        _, scope_var, gap = _moments(mean, var, batch, scope, mixture.num_groups)
        pooled = _pooled_gradients(gradients, batch_gradients, scope, mixture.num_groups)
        d_ratios[1][k] = _dot(gradients[1], scope_var)
        if gap is not None:
            d_ratios[0][k] = -_dot(gradients[0], gap)
        if pooled is None:
            continue
        shares = (pooled[0] * ratios[0][k], pooled[1] * ratios[1][k])
        d_mean += shares[0]
        d_var += shares[1]
        if gap is not None:
            d_mean.addcmul_(gap, shares[1], value=2)
    d_controls = [r * (d - (r * d).sum()) for r, d in zip(ratios, d_ratios, strict=True)]
    count, correction = positions
    slope = d_var.mul_(2 / max(count - correction, 1))
    offset = d_mean.div_(count).addcmul_(mixed[0] - mean, slope)
    return slope, offset, *d_controls


def _ratios(controls: Moments, dtype: torch.dtype) -> list[Tensor]:
    return [torch.softmax(control.to(dtype), 0) for control in controls]


def _dot(table: Tensor, factor: Tensor) -> Tensor:
    """``Σ table·factor``; ``factor`` broadcasts to (N, C)."""
    if factor.shape[0] == 1:
        return (table.sum(0) * factor).sum()
    if factor.shape[1] == 1:
        return (table.sum(1, keepdim=True) * factor).sum()
    return torch.dot(table.reshape(-1), factor.reshape(-1))


def _mix_gradients(total: Tensor, dot: Tensor, rstd: Tensor, weight: Tensor | None) -> Moments:
    scale = rstd if weight is None else rstd * weight.to(rstd.dtype)
    return (total * scale).neg_(), (dot * scale).mul_(rstd).mul_(rstd).mul_(-0.5)


def _pooled_gradients(
    gradients: Moments, batch_gradients: Moments | None, scope: str, num_groups: int
) -> Moments | None:
    if scope == 'in':
        return gradients
    if scope == 'bn':
        return batch_gradients
    return tuple(_average(table, scope, num_groups) for table in gradients)


def _moments(
    mean: Tensor, var: Tensor, batch: Moments, scope: str, num_groups: int
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Moments of a scope, broadcastable to (N, C), and ``mean - scope mean`` unless that is 0."""
    if scope == 'in':
        return mean, var, None
    if scope == 'bn':
        scope_mean, scope_var = (table.to(mean.dtype).unsqueeze(0) for table in batch)
        return scope_mean, scope_var, mean - scope_mean
    return _pool(mean, var, scope, num_groups)


def _pool(mean: Tensor, var: Tensor, scope: str, num_groups: int) -> tuple[Tensor, Tensor, Tensor]:
    pooled = _average(mean, scope, num_groups, torch.float64).to(mean.dtype)
    gap = mean - pooled
    return pooled, _average(torch.addcmul(var, gap, gap), scope, num_groups), gap


def _average(
    table: Tensor, scope: str, num_groups: int, dtype: torch.dtype | None = None
) -> Tensor:
    if scope == 'gn':
        samples, channels = table.shape
        groups = (samples, num_groups, channels // num_groups)
        pooled = table.view(groups).mean(2, keepdim=True, dtype=dtype)
        return pooled.expand(groups).reshape(samples, channels)
    dim = 0 if scope == 'bn' else 1
    if table.shape[dim] == 0:
        return table.sum(dim, keepdim=True, dtype=dtype)
    return table.mean(dim, keepdim=True, dtype=dtype)
