"""The four passes over the big tensors, made of ATen calls on blocks that stay in the cache.

See `Passes` in `kernels/contract.py` for arguments and results.
"""

import math

import torch
from torch import Tensor

from sn_openmmlab.kernels.aten import columns, rows
from sn_openmmlab.kernels.aten.walk import Walk, scratch

# In units of the standard deviation: a smaller offset costs the quick forms no significant digits.
SMALL_OFFSET = 16


def instance_moments(x: Tensor, correction: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return mean and variance of each channel of each sample: the first line of Eq. 4."""
    walk = Walk(x)
    divisor = max(walk.count - correction, 1)
    if rows.is_rows(x, dtype):
        mean, var = rows.moments(x)
        # The kernel gives NaN for finite numbers beyond the root of the largest one.
        if math.isfinite(var.sum()):
            return mean, var.mul_(walk.count / divisor)
    if columns.is_columns(x, dtype):
        mean, var = columns.moments(x)
        if not _has_large_offset(mean, var.rsqrt()):
            return mean, var.mul_(walk.count / divisor)
    x = walk.view(x)
    mean = x.new_zeros(walk.table_shape, dtype=dtype)
    square = torch.zeros_like(mean)
    for part, blocks in walk.groups():
        _group_moments(x, blocks, walk, mean[part], square[part])
    return mean.flatten(1), square.div_(divisor).flatten(1)


def normalize(x: Tensor, centre: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
    """Return `(x - centre) * scale + bias`."""
    shift = torch.zeros_like(centre) if bias is None else bias.expand_as(centre)
    centred = _has_large_offset(centre, scale)
    if not centred:
        shift = torch.addcmul(shift, centre, scale, value=-1)
        if rows.is_rows(x, centre.dtype):
            return rows.affine(x, scale, shift)
    walk = Walk(x)
    y = torch.empty_like(x)
    x, out = walk.view(x), walk.view(y)
    centre, scale, shift = walk.table(centre), walk.table(scale), walk.table(shift)
    for part, block in walk.blocks():
        t = out[block] if y.dtype == centre.dtype else scratch(x[block], centre.dtype)
        source = torch.sub(x[block], centre[part], out=t) if centred else x[block]
        _scale_and_shift(source, scale[part], shift[part], walk, out=t)
        if t.dtype != y.dtype:
            out[block].copy_(t)
    return y


def gradient_sums(dy: Tensor, x: Tensor, centre: Tensor) -> tuple[Tensor, Tensor]:
    """Return `Σ dy` and `Σ dy·(x - centre)` over the positions."""
    if rows.is_rows(x, centre.dtype) and rows.is_rows(dy, centre.dtype):
        sums = rows.sums(dy, x, centre)
        if sums is not None:
            return sums
    if columns.is_columns(x, centre.dtype) and columns.is_columns(dy, centre.dtype):
        return columns.sums(dy, x, centre)
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
    """Return `dy * scale + (x - centre) * slope + offset`.

    `slope` is small, so moving the centre into the offset costs no significant digits, unlike in
    `normalize`.
    """
    shift = torch.addcmul(offset, centre, slope, value=-1)
    if rows.is_rows(x, centre.dtype) and rows.is_rows(dy, centre.dtype):
        return rows.input_gradient(dy, x, scale, slope, shift)
    walk = Walk(x)
    dx = torch.empty_like(x)
    x, dy, out = walk.view(x), walk.view(dy), walk.view(dx)
    scale, slope, shift = walk.table(scale), walk.table(slope), walk.table(shift)
    for part, block in walk.blocks():
        t = out[block] if dx.dtype == scale.dtype else scratch(x[block], scale.dtype)
        _scale_and_shift(x[block], slope[part], shift[part], walk, out=t)
        t.addcmul_(dy[block].to(t.dtype), scale[part])
        if t.dtype != dx.dtype:
            out[block].copy_(t)
    return dx


def _group_moments(x: Tensor, blocks: list, walk: Walk, mean: Tensor, square: Tensor) -> None:
    """Fill `mean` and `square`, the sum of the squared deviations from it.

    After rounding, the mean of the deviations is not quite 0; it corrects both.
    """
    for block in blocks:
        mean += x[block].sum(walk.positions, keepdim=True, dtype=mean.dtype)
    mean /= max(walk.count, 1)
    rest = torch.zeros_like(mean)
    for block in blocks:
        away = scratch(x[block], mean.dtype)
        torch.sub(x[block], mean, out=away)
        rest += away.sum(walk.positions, keepdim=True)
        square += away.mul_(away).sum(walk.positions, keepdim=True)
    rest /= max(walk.count, 1)
    mean += rest
    square.addcmul_(rest, rest, value=-walk.count).clamp_(min=0)


def _has_large_offset(centre: Tensor, scale: Tensor) -> bool:
    """Return whether the quick forms may lose digits that the forms on `x - centre` keep.

    The check is cheap on the CPU; elsewhere it would wait for the device.
    """
    if not centre.is_cpu or centre.numel() == 0:
        return True
    # A channel that is all zeros gives 0 * inf here, and has no offset.
    offset = (centre * scale).nan_to_num_(0.0).abs_()
    return bool(offset.amax() > SMALL_OFFSET)


def _scale_and_shift(t: Tensor, scale: Tensor, shift: Tensor, walk: Walk, out: Tensor) -> None:
    """Compute `out = t * scale + shift` by the quicker calls for the order of the walk."""
    if walk.channels_last:
        torch.addcmul(shift, t.to(out.dtype), scale, out=out)
    else:
        torch.mul(t, scale, out=out).add_(shift)
