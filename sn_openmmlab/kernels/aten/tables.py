"""The arithmetic between the passes, on (N, C) tables.

With P_k for the average over what a scope pools, the scope's moments are

    μ_k = P_k μ        σ_k² = P_k (σ² + (μ - μ_k)²)

and the layer normalizes by their mixes (Eq. 3 to 5). Since P_k is symmetric and P_k (μ - μ_k) = 0,
the gradients of the mixes pass to the instances' moments as

    dμ = Σ w_k P_k d_centre + 2 Σ w′_k (μ - μ_k) P_k d_var        dσ² = Σ w′_k P_k d_var

All is done in float64, so that neither sums nor ratios that add up to 1 only nearly cost digits.
"""

import torch
from torch import Tensor

from sn_openmmlab.kernels.mixture import Mixture

Moments = tuple[Tensor, Tensor]


def batch_moments(mean: Tensor, var: Tensor) -> Moments:
    """Mean and variance of ``'bn'`` from those of the instances, (C,) each."""
    mean, var = mean.double(), var.double()
    samples = max(mean.shape[0], 1)
    pooled = mean.sum(0) / samples
    return pooled, (mean - pooled).square_().add_(var).sum(0) / samples


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
    means, vars_ = mean.double(), var.double()
    mean_ratios, var_ratios = (torch.softmax(control.double(), 0) for control in controls)
    centre, mixed = torch.zeros_like(means), torch.zeros_like(vars_)
    for k, scope in enumerate(mixture.scopes):
        scope_mean, scope_var = _moments(means, vars_, batch, scope, mixture.num_groups)
        centre.addcmul_(scope_mean, mean_ratios[k])
        mixed.addcmul_(scope_var, var_ratios[k])
    rstd = mixed.add_(mixture.eps).rsqrt_()
    return centre.to(mean.dtype), rstd.to(mean.dtype)


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
    d_weight = (dot.double() * rstd).sum(0)
    return d_weight, total.double().sum(0), (d_centre.sum(0), d_var.sum(0))


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
    mean, var = (table.double() for table in instances)
    d_mixed = _mix_gradients(*sums, mixed[1], weight)
    ratios = [torch.softmax(control.double(), 0) for control in controls]
    d_ratios = [torch.zeros_like(ratio) for ratio in ratios]
    d_mean, d_var = torch.zeros_like(mean), torch.zeros_like(var)
    for k, scope in enumerate(mixture.scopes):
        scope_mean, scope_var = _moments(mean, var, batch, scope, mixture.num_groups)
        gap = mean - scope_mean
        d_ratios[0][k] = -(d_mixed[0] * gap).sum()
        d_ratios[1][k] = (d_mixed[1] * scope_var).sum()
        pooled = _pooled_gradients(d_mixed, batch_gradients, scope, mixture.num_groups)
        if pooled is not None:
            d_mean.addcmul_(pooled[0], ratios[0][k]).addcmul_(gap, pooled[1] * ratios[1][k] * 2)
            d_var.addcmul_(pooled[1], ratios[1][k])
    d_controls = [r * (d - (r * d).sum()) for r, d in zip(ratios, d_ratios, strict=True)]
    count, correction = positions
    slope = d_var.mul_(2 / max(count - correction, 1))
    offset = d_mean.div_(count).addcmul_(mixed[0] - mean, slope)
    return slope.to(mixed[0].dtype), offset.to(mixed[0].dtype), *d_controls


def _pooled_gradients(
    d_mixed: Moments, batch_gradients: Moments | None, scope: str, num_groups: int
) -> Moments | None:
    if scope == 'bn':
        return batch_gradients
    return tuple(_average(table, scope, num_groups) for table in d_mixed)


def _mix_gradients(total: Tensor, dot: Tensor, rstd: Tensor, weight: Tensor | None) -> Moments:
    # The scale that the passes multiply by, with its rounding, so that what cancels does.
    scale = rstd if weight is None else rstd * weight.to(rstd.dtype)
    scale, rstd = scale.double(), rstd.double()
    return -(total * scale), dot * scale * rstd.square() * -0.5


def _moments(mean: Tensor, var: Tensor, batch: Moments, scope: str, num_groups: int) -> Moments:
    if scope == 'in':
        return mean, var
    if scope == 'bn':
        return batch[0].double(), batch[1].double()
    pooled = _average(mean, scope, num_groups)
    return pooled, _average((mean - pooled).square_().add_(var), scope, num_groups)


def _average(table: Tensor, scope: str, num_groups: int) -> Tensor:
    if scope == 'in':
        return table
    if scope == 'ln':
        return table.mean(1, keepdim=True)
    samples, channels = table.shape
    groups = (samples, num_groups, channels // num_groups)
    return table.view(groups).mean(2, keepdim=True).expand(groups).reshape(samples, channels)
