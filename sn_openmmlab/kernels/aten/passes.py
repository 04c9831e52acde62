"""The four passes over the big tensors, made of ATen calls on blocks that stay in the cache."""

import torch
from torch import Tensor

from sn_openmmlab.kernels.aten.rows import row_moments, row_sums, rows_of
from sn_openmmlab.kernels.aten.walk import Walk, scratch


def instance_moments(x: Tensor, correction: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Mean and variance of each channel of each sample (the first line of Eq. 4).

    Args:
        x: (N, C, *).
        correction: the variance divides by the number of positions less this, at least by one.
        dtype: of the results, and of the sums.

    Returns:
        Mean and variance, (N, C) each.
    """
    walk = Walk(x)
    x = walk.view(x)
    mean = x.new_zeros(walk.table_shape, dtype=dtype)
    square = torch.zeros_like(mean)
    for part, blocks in walk.groups():
        rows = rows_of(x[part], walk, dtype)
        if rows is not None:
            row_moments(rows, mean[part], square[part])
        else:
            _block_moments(x, blocks, walk, mean[part], square[part])
    var = square.div_(max(walk.count - correction, 1))
    return mean.flatten(1), var.flatten(1)


def normalize(x: Tensor, centre: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
    """Return ``(x - centre) * scale + bias`` in the type and memory format of ``x``.

    Args:
        x: (N, C, *).
        centre: (N, C), in the statistics' type.
        scale: (N, C), in that type.
        bias: (C,), in that type, or None for 0.
    """
    bias = centre.new_zeros(1, 1).expand(1, x.shape[1]) if bias is None else bias.unsqueeze(0)
    walk = Walk(x)
    y = torch.empty_like(x)
    x, out = walk.view(x), walk.view(y)
    centre, scale, bias = walk.table(centre), walk.table(scale), walk.table(bias)
    for part, block in walk.blocks():
        t = out[block] if y.dtype == centre.dtype else scratch(x[block], centre.dtype)
        torch.sub(x[block], centre[part], out=t)
        _scale_and_shift(t, scale[part], bias[part], walk, out=t)
        if t.dtype != y.dtype:
            out[block].copy_(t)
    return y


def gradient_sums(dy: Tensor, x: Tensor, centre: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``Σ dy`` and ``Σ dy·(x - centre)`` over the positions, (N, C) each.

    Args:
        dy: (N, C, *), the gradient of the output.
        x: the input, in the same shape.
        centre: (N, C), in the statistics' type.
    """
    sums = row_sums(dy, x, centre)
    if sums is not None:
        return sums
    walk = Walk(x)
    x, dy, centre = walk.view(x), walk.view(dy), walk.table(centre)
    total, dot = torch.zeros_like(centre), torch.zeros_like(centre)
    for part, block in walk.blocks():
        t = scratch(x[block], centre.dtype)
        torch.sub(x[block], centre[part], out=t).mul_(dy[block])
        dot[part] += t.sum(walk.positions, keepdim=True)
        total[part] += dy[block].sum(walk.positions, keepdim=True, dtype=centre.dtype)
    return total.flatten(1), dot.flatten(1)


def input_gradient(
    dy: Tensor, x: Tensor, centre: Tensor, scale: Tensor, slope: Tensor, offset: Tensor
) -> Tensor:
    """Return ``dy * scale + (x - centre) * slope + offset`` in the type and format of ``x``.

    ``slope`` is small, so here, unlike in :func:`normalize`, taking the centre from the offset
    costs no digits that matter.

    Args:
        dy: (N, C, *), the gradient of the output.
        x: the input, in the same shape.
        centre: (N, C), in the statistics' type; so are the others.
        scale: (N, C).
        slope: (N, C).
        offset: (N, C).
    """
    walk = Walk(x)
    dx = torch.empty_like(x)
    x, dy, out = walk.view(x), walk.view(dy), walk.view(dx)
    shift = walk.table(torch.addcmul(offset, centre, slope, value=-1))
    scale, slope = walk.table(scale), walk.table(slope)
    for part, block in walk.blocks():
        t = out[block] if dx.dtype == scale.dtype else scratch(x[block], scale.dtype)
        _scale_and_shift(x[block], slope[part], shift[part], walk, out=t)
        t.addcmul_(dy[block].to(t.dtype), scale[part])
        if t.dtype != dx.dtype:
            out[block].copy_(t)
    return dx


def _block_moments(x: Tensor, blocks: list, walk: Walk, mean: Tensor, square: Tensor) -> None:
    """Fill ``mean`` and ``square``, the sum of the squared deviations from it.

    Rounding keeps the mean of the deviations from being 0; it corrects both.
    """
    for block in blocks:
        mean += x[block].sum(walk.positions, keepdim=True, dtype=mean.dtype)
    mean /= walk.count
    rest = torch.zeros_like(mean)
    for block in blocks:
        away = scratch(x[block], mean.dtype)
        torch.sub(x[block], mean, out=away)
        rest += away.sum(walk.positions, keepdim=True)
        square += away.mul_(away).sum(walk.positions, keepdim=True)
    rest /= walk.count
    mean += rest
    square.addcmul_(rest, rest, value=-walk.count).clamp_(min=0)


def _scale_and_shift(t: Tensor, scale: Tensor, shift: Tensor, walk: Walk, out: Tensor) -> None:
    """``out = t * scale + shift`` by the quicker calls for the order of the walk."""
    if walk.channels_last:
        torch.addcmul(shift, t, scale, out=out)
    else:
        torch.mul(t, scale, out=out).add_(shift)
