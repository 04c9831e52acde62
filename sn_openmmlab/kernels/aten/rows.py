"""The passes over contiguous CPU tensors by torch's own norm kernels: fewer calls, same values.

A row holds the contiguous positions of one channel of one sample. Viewed as one sample of N·C
channels, (1, N·C, positions), the tensor fits the kernels of batch and group norm.
"""

import torch
from torch import Tensor

from sn_openmmlab.kernels.aten import walk

# Longest row to sum: batch norm's kernel adds one number after the other, which loses digits.
PLAIN_SUM = 4096


def is_rows(x: Tensor, dtype: torch.dtype) -> bool:
    """Return whether `x`, (N, C, *), is on the CPU, of type `dtype`, and made of rows."""
    return x.is_cpu and x.dtype == dtype and x.dim() > 2 and x.is_contiguous() and x.numel() > 0


def moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return each row's mean and mean squared deviation from it, (N, C) each, by Welford."""
    rows = _rows(x)
    _, count, length = rows.shape
    mean, rstd = x.new_empty(2, count)
    step = max(walk.BLOCK_ELEMENTS // length, 1)
    for start in range(0, count, step):
        # The kernel also writes its normalized output; in blocks it stays in the cache.
        block = rows[:, start : start + step]
        part = slice(start, start + block.shape[1])
        _, mean[part], rstd[part] = torch.native_group_norm(
            block, None, None, 1, block.shape[1], length, block.shape[1], 0.0
        )
    return mean.view(x.shape[:2]), rstd.reciprocal_().square_().view(x.shape[:2])


def affine(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Return `x * scale + shift` with one number per row, (N, C)."""
    scale, shift = scale.reshape(-1), shift.reshape(-1)
    zeros, ones = torch.zeros_like(scale), torch.ones_like(scale)
    y, *_ = torch.native_batch_norm(_rows(x), scale, shift, zeros, ones, False, 0.0, 0.0)
    # Not a view: autograd would forbid an inplace ReLU on it.
    return torch.ops.aten._unsafe_view(y, x.shape)


def sums(dy: Tensor, x: Tensor, centre: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return `Σ dy` and `Σ dy·(x - centre)` of each row, (N, C) each.

    None where the rows are long and do not split into short pieces of equal length.
    """
    pieces = _pieces(x.shape[2:].numel())
    if pieces is None:
        return None
    shape = (1, centre.numel() * pieces, -1)
    centres = centre.reshape(-1).repeat_interleave(pieces)
    ones = torch.ones_like(centres)
    _, dot, total = torch.ops.aten.native_batch_norm_backward(
        dy.view(shape),
        x.view(shape),
        ones,
        None,
        None,
        centres,
        ones,
        True,
        0.0,
        [False, True, True],
    )
    return tuple(table.view(*centre.shape, pieces).sum(-1) for table in (total, dot))


def input_gradient(dy: Tensor, x: Tensor, scale: Tensor, slope: Tensor, shift: Tensor) -> Tensor:
    """Return `dy * scale + x * slope + shift` with one number per row, (N, C)."""
    dx = affine(dy, scale, shift)
    _rows(dx).addcmul_(_rows(x), slope.reshape(1, -1, 1))
    return dx


def _rows(x: Tensor) -> Tensor:
    return x.view(1, x.shape[0] * x.shape[1], -1)


def _pieces(length: int) -> int | None:
    """Return the least number of equal pieces of at most `PLAIN_SUM` numbers, or None."""
    least = -(-length // PLAIN_SUM)
    for pieces in range(least, 16 * least + 1):
        if length % pieces == 0:
            return pieces
    return None
