"""The arithmetic between the passes, on (N, C) tables.

See `kernels/contract.py` for the tables and the moments μ_k and σ_k² of the scopes. The gradients
of the mixed mean and variance, d_centre and d_var, pass to the moments of the instances as

    dμ = Σ P_k (w_k d_centre) + 2 Σ (μ - μ_k) P_k (w′_k d_var)        dσ² = Σ P_k (w′_k d_var)

since P_k, the average over what a scope pools, is symmetric and P_k (μ - μ_k) = 0. Where groups of
channels have ratios of their own, w_k and w′_k have a value for each channel.

Means are pooled in float64, so that the mean of equal numbers is that number. They are mixed as
distances from the instance mean: then ratios that do not add up to exactly 1 lose no digits of a
large common offset.
"""

import torch
from torch import Tensor

from sn_openmmlab.kernels.contract import Forward, Mixture, Moments
from sn_openmmlab.scopes import SCOPES


def batch_moments(instances: Tensor) -> Tensor:
    """Return `batch` from `instances`."""
    mean, var, _ = _pool(instances[0], instances[1], 'bn', 1)
    return torch.cat((mean, var))


def mix(instances: Tensor, batch: Tensor | None, controls: Moments, mixture: Mixture) -> Tensor:
    """Return `mixed`."""
    mean, var = instances
    mean_ratios, var_ratios = _ratios(controls, mean.dtype, mean.shape[1])
    centre, mixed = mean, torch.full_like(var, mixture.eps)
    for k, scope in enumerate(mixture.scopes):
        _, scope_var, gap = _moments(mean, var, batch, scope, mixture.num_groups)
        if gap is not None:
            centre = torch.addcmul(centre, gap, mean_ratios[..., k], value=-1)
        mixed.addcmul_(scope_var, var_ratios[..., k])
    return torch.stack((centre, mixed.rsqrt_()))


def channel_gradients(sums: Tensor, mixed: Tensor, weight: Tensor | None) -> Tensor:
    """Return the gradients of γ and β, and those of both mixes summed over N, (4, C)."""
    gradients = _mix_gradients(sums, mixed[1], weight)
    own = (sums[1] * mixed[1], sums[0])
    return torch.stack([table.sum(0) for table in (*own, *gradients)])


def position_gradients(
    sums: Tensor,
    forward: Forward,
    batch_gradients: Tensor | None,
    mixture: Mixture,
    positions: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return what the statistics add to the gradient of `x`, and the gradients of λ and λ′.

    The first two are slope and shift of `x * slope + shift`, (N, C) each.
    """
    mean, var = forward.instances
    gradients = _mix_gradients(sums, forward.mixed[1], forward.weight)
    ratios = _ratios(forward.controls, mean.dtype, mean.shape[1])
    d_ratios = [mean.new_zeros(control.shape) for control in forward.controls]
    d_mean, d_var = torch.zeros_like(mean), torch.zeros_like(var)
    for k, scope in enumerate(mixture.scopes):
        _, scope_var, gap = _moments(mean, var, forward.batch, scope, mixture.num_groups)
        _dot(gradients[1], scope_var, out=d_ratios[1][..., k])
        if gap is not None:
            _dot(gradients[0], gap, out=d_ratios[0][..., k])
        own = tuple(ratio[..., k] for ratio in ratios)
        shares = _shares(gradients, batch_gradients, own, scope, mixture.num_groups)
        if shares is None:
            continue
        # dμ and dσ²: see above.
        d_mean += shares[0]
        d_var += shares[1]
        if gap is not None:
            d_mean.addcmul_(gap, shares[1], value=2)
    d_ratios[0].neg_()
    d_controls = [_d_control(*pair) for pair in zip(forward.controls, d_ratios, strict=True)]
    slope = d_var.mul_(2 / max(positions - mixture.correction, 1))
    return slope, d_mean.div_(positions).addcmul_(mean, slope, value=-1), *d_controls


def _ratios(controls: Moments, dtype: torch.dtype, channels: int) -> list[Tensor]:
    """Return w and w′, (number of scopes,) each; (C, number of scopes) if groups differ."""
    ratios = [torch.softmax(control.to(dtype), -1) for control in controls]
    return [r.repeat_interleave(channels // len(r), 0) if r.dim() == 2 else r for r in ratios]


def _d_control(control: Tensor, d_ratios: Tensor) -> Tensor:
    """Pass the gradient of the ratios through the softmax."""
    ratios = torch.softmax(control.to(d_ratios.dtype), -1)
    return ratios * (d_ratios - (ratios * d_ratios).sum(-1, keepdim=True))


def _dot(table: Tensor, factor: Tensor, out: Tensor) -> None:
    """Fill `out` with `Σ table·factor`, for each of its groups of channels.

    Args:
        table: (N, C).
        factor: broadcasts to (N, C).
        out: a scalar, or (G,).
    """
    if out.dim():
        products = (table * factor).sum(0)
        out.copy_(products.view(len(out), -1).sum(1))
    elif factor.shape[0] == 1:
        out.copy_((table.sum(0) * factor).sum())
    elif factor.shape[1] == 1:
        out.copy_((table.sum(1, keepdim=True) * factor).sum())
    else:
        out.copy_(torch.dot(table.reshape(-1), factor.reshape(-1)))


def _mix_gradients(sums: Tensor, rstd: Tensor, weight: Tensor | None) -> Moments:
    total, dot = sums
    scale = rstd if weight is None else rstd * weight.to(rstd.dtype)
    return (total * scale).neg_(), (dot * scale).mul_(rstd).mul_(rstd).mul_(-0.5)


def _shares(
    gradients: Moments,
    batch_gradients: Tensor | None,
    ratios: Moments,
    scope: str,
    num_groups: int,
) -> Moments | None:
    """Return P_k (w_k d_centre) and P_k (w′_k d_var), or None where they are 0.

    Args:
        gradients: of the mixes, d_centre and d_var, (N, C) each.
        batch_gradients: the same averaged over the batch, (2, C), or None.
        ratios: w_k and w′_k, scalars or (C,) each.
        scope: the name of scope k.
        num_groups: the number of groups of `'gn'`.
    """
    if scope == 'bn':
        # Averaged already; the ratios do not differ between samples.
        pairs = None if batch_gradients is None else zip(batch_gradients, ratios, strict=True)
        return None if pairs is None else tuple(table * ratio for table, ratio in pairs)
    if not SCOPES[scope].dims:
        return tuple(table * ratio for table, ratio in zip(gradients, ratios, strict=True))
    if ratios[0].dim() == 0:  # the smaller tables to multiply
        pooled = (_average(table, scope, num_groups) for table in gradients)
        return tuple(table * ratio for table, ratio in zip(pooled, ratios, strict=True))
    weighted = (table * ratio for table, ratio in zip(gradients, ratios, strict=True))
    return tuple(_average(table, scope, num_groups) for table in weighted)


def _moments(
    mean: Tensor, var: Tensor, batch: Tensor | None, scope: str, num_groups: int
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return a scope's moments, broadcastable to (N, C), and `mean - scope mean` unless it is 0."""
    if scope == 'bn':
        scope_mean, scope_var = (table.to(mean.dtype).unsqueeze(0) for table in batch)
        return scope_mean, scope_var, mean - scope_mean
    if not SCOPES[scope].dims:
        return mean, var, None
    return _pool(mean, var, scope, num_groups)


def _pool(mean: Tensor, var: Tensor, scope: str, num_groups: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return a scope's moments by the law of total variance, and `mean - scope mean`.

    The gap is needed again, and float64 takes fewer calls than the second mean of `plain`.
    """
    pooled = _average(mean, scope, num_groups, torch.float64).to(mean.dtype)
    gap = mean - pooled
    return pooled, _average(torch.addcmul(var, gap, gap), scope, num_groups), gap


def _average(
    table: Tensor, scope: str, num_groups: int, dtype: torch.dtype | None = None
) -> Tensor:
    """Average a table over what a scope pools, broadcastable to (N, C); 0 over nothing."""
    dims, grouped, _ = SCOPES[scope]
    samples, channels = table.shape
    if grouped:
        # Channels of a group are dimension 2 of the view.
        table = table.view(samples, num_groups, channels // num_groups)
        dims = tuple(2 if dim == 1 else dim for dim in dims)
    shape = table.shape
    reduce = torch.mean if table.numel() else torch.sum
    pooled = reduce(table, dims, keepdim=True, dtype=dtype)
    return pooled.expand(shape).reshape(samples, channels) if grouped else pooled
