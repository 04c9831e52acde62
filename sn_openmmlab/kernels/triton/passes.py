"""The four passes over the big tensors, one Triton kernel each; they compute in float32.

Tables are (N, C), and β is (C,). A pass that reduces splits long rows over several programs and
merges what they found, always in the same order.
"""

import torch
from torch import Tensor

from sn_openmmlab.kernels.triton.launch import launch
from sn_openmmlab.kernels.triton.merge import merge_moments, merge_sums
from sn_openmmlab.kernels.triton.pass_kernels import (
    gradient_kernel,
    moments_kernel,
    normalize_kernel,
    sums_kernel,
)
from sn_openmmlab.kernels.triton.tiles import per_row, settle, visit


def instance_moments(x: Tensor, correction: int, dtype: torch.dtype) -> Tensor:
    """Return mean and variance of each channel of each sample, (2, N, C): line one of Eq. 4."""
    tiles, (values,) = visit(x)
    count, splits = tiles.positions, tiles.splits
    factor = count / max(count - correction, 1)
    parts = x.new_empty((2, tiles.outer, splits, tiles.rows), dtype=dtype)
    arguments = (values, *parts, *values.shape[1:], *values.stride())
    launch(
        moments_kernel, tiles.programs, *arguments, factor if splits == 1 else 1.0, **tiles.shape
    )
    if splits != 1:
        parts = merge_moments(*parts, tiles.tile_positions, count, factor)
    return parts.view(2, *x.shape[:2])


def normalize(x: Tensor, centre: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
    """Return `(x - centre) * scale + bias`."""
    y = torch.empty_like(x)
    tiles, (values, out) = visit(x, y)
    bias = None if bias is None else per_row(bias, tiles)
    arguments = (values, out, centre.contiguous(), scale.contiguous(), bias)
    sizes = (*values.shape[1:], *values.stride(), *out.stride())
    launch(normalize_kernel, tiles.programs, *arguments, *sizes, **tiles.shape)
    return settle(y, out, x)


def gradient_sums(dy: Tensor, x: Tensor, centre: Tensor) -> Tensor:
    """Return `Σ dy` and `Σ dy·(x - centre)` over the positions, (2, N, C)."""
    tiles, (values, d_out) = visit(x, dy)
    parts = centre.new_empty((2, tiles.outer, tiles.splits, tiles.rows))
    sizes = (*values.shape[1:], *d_out.stride(), *values.stride())
    arguments = (d_out, values, centre.contiguous(), *parts, *sizes)
    launch(sums_kernel, tiles.programs, *arguments, **tiles.shape)
    if tiles.splits != 1:
        parts = merge_sums(parts.flatten(0, 1))
    return parts.view(2, *x.shape[:2])


def input_gradient(
    dy: Tensor, x: Tensor, centre: Tensor, scale: Tensor, slope: Tensor, offset: Tensor
) -> Tensor:
    """Return `dy * scale + (x - centre) * slope + offset`."""
    dx = torch.empty_like(x)
    tiles, (values, d_out, out) = visit(x, dy, dx)
    tables = (table.contiguous() for table in (centre, scale, slope, offset))
    sizes = (*values.shape[1:], *d_out.stride(), *values.stride(), *out.stride())
    launch(gradient_kernel, tiles.programs, d_out, values, out, *tables, *sizes, **tiles.shape)
    return settle(dx, out, x)
