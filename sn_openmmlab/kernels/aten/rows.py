"""Sums over rows that lie whole in memory, by torch's norm kernels: fewer calls, same values.

An instance and channel whose positions are contiguous is one row. Seen as one sample with N·C
channels, such a tensor is a case for the kernels of group and batch norm.
"""

import torch
from torch import Tensor

from sn_openmmlab.kernels.aten.walk import Walk

# Below, the kernel's work per row outweighs that on the row.
LONG_ROW = 256
# The kernel of batch norm adds up one number after the other, which loses digits in longer rows.
PLAIN_SUM = 4096


def rows_of(x: Tensor, walk: Walk, dtype: torch.dtype) -> Tensor | None:
    """A part of a walked tensor as (rows, positions), or None where that needs a copy."""
    fits = x.is_cpu and x.dtype == dtype and walk.count >= LONG_ROW
    if fits and not walk.channels_last and x.is_contiguous():
        return x.view(-1, walk.count)
    return None


def row_moments(rows: Tensor, mean: Tensor, square: Tensor) -> None:
    """Fill the mean of each row and the sum of its squared deviations from it (Welford's way)."""
    count, length = rows.shape
    row = rows.view(1, count, length)
    _, means, rstd = torch.native_group_norm(row, None, None, 1, count, length, count, 0.0)
    mean.copy_(means.view(mean.shape))
    square.copy_(rstd.view(square.shape)).reciprocal_().square_().mul_(length)


def row_sums(dy: Tensor, x: Tensor, centre: Tensor) -> tuple[Tensor, Tensor] | None:
    """``Σ dy`` and ``Σ dy·(x - centre)`` of each row, (N, C) each; None where they need a copy."""
    length = x.shape[2:].numel()
    pieces = _pieces(length)
    same = x.is_cpu and x.dtype == dy.dtype == centre.dtype
    if pieces is None or not (same and x.is_contiguous() and dy.is_contiguous()):
        return None
    count = centre.numel() * pieces
    shape = (1, count, length // pieces)
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
    return tuple(sums.view(*centre.shape, pieces).sum(-1) for sums in (total, dot))


def _pieces(length: int) -> int | None:
    """The least number of equal pieces of at most ``PLAIN_SUM`` numbers, or None."""
    least = -(-length // PLAIN_SUM)
    for pieces in range(max(least, 1), 16 * least + 1):
        if length % pieces == 0:
            return pieces
    return None
