"""The four passes over the big tensors, one Triton kernel each; they compute in float32.

See :mod:`sn_openmmlab.kernels.aten.passes` for the same functions made of ATen calls. A pass that
reduces splits long rows over several programs and merges what they found, always in the same order.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from sn_openmmlab.kernels.triton.addressing import (
    backwards,
    load_tile,
    locate,
    multiple,
    place,
    store_tile,
)
from sn_openmmlab.kernels.triton.launch import launch
from sn_openmmlab.kernels.triton.merge import merge_moments, merge_sums
from sn_openmmlab.kernels.triton.tiles import per_row, settle, visit


def instance_moments(x: Tensor, correction: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Mean and variance of each channel of each sample (the first line of Eq. 4).

    Args:
        x: (N, C, *).
        correction: the variance divides by the number of positions less this, at least by one.
        dtype: of the results, float32.

    Returns:
        Mean and variance, (N, C) each; 0 where there are no positions.
    """
    tiles, (values,) = visit(x)
    count, splits = tiles.positions, tiles.splits
    factor = count / max(count - correction, 1)
    parts = x.new_empty((2, tiles.outer, splits, tiles.rows), dtype=dtype)
    arguments = (values, *parts, *values.shape[1:], *values.stride())
    launch(
        _moments_kernel, tiles.programs, *arguments, factor if splits == 1 else 1.0, **tiles.shape
    )
    if splits != 1:
        parts = merge_moments(*parts, tiles.tile_positions, count, factor)
    return tuple(table.view(x.shape[:2]) for table in parts)


def normalize(x: Tensor, centre: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
    """Return ``(x - centre) * scale + bias`` in the type and memory format of ``x``.

    Args:
        x: (N, C, *).
        centre: (N, C), in the statistics' type.
        scale: (N, C), in that type.
        bias: (C,), in that type, or None for 0.
    """
    y = torch.empty_like(x)
    tiles, (values, out) = visit(x, y)
    bias = None if bias is None else per_row(bias, tiles)
    arguments = (values, out, centre.contiguous(), scale.contiguous(), bias)
    sizes = (*values.shape[1:], *values.stride(), *out.stride())
    launch(_normalize_kernel, tiles.programs, *arguments, *sizes, **tiles.shape)
    return settle(y, out, x)


def gradient_sums(dy: Tensor, x: Tensor, centre: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``Σ dy`` and ``Σ dy·(x - centre)`` over the positions, (N, C) each.

    Args:
        dy: (N, C, *), the gradient of the output.
        x: the input, in the same shape.
        centre: (N, C), in the statistics' type.
    """
    tiles, (values, d_out) = visit(x, dy)
    parts = centre.new_empty((2, tiles.outer, tiles.splits, tiles.rows))
    sizes = (*values.shape[1:], *d_out.stride(), *values.stride())
    arguments = (d_out, values, centre.contiguous(), *parts, *sizes)
    launch(_sums_kernel, tiles.programs, *arguments, **tiles.shape)
    if tiles.splits != 1:
        parts = merge_sums(parts.flatten(0, 1))
    return tuple(parts.view(2, *x.shape[:2]))


def input_gradient(
    dy: Tensor, x: Tensor, centre: Tensor, scale: Tensor, slope: Tensor, offset: Tensor
) -> Tensor:
    """Return ``dy * scale + (x - centre) * slope + offset`` in the type and format of ``x``.

    Args:
        dy: (N, C, *), the gradient of the output.
        x: the input, in the same shape.
        centre: (N, C), in the statistics' type; so are the others.
        scale: (N, C).
        slope: (N, C).
        offset: (N, C).
    """
    dx = torch.empty_like(x)
    tiles, (values, d_out, out) = visit(x, dy, dx)
    tables = (table.contiguous() for table in (centre, scale, slope, offset))
    sizes = (*values.shape[1:], *d_out.stride(), *values.stride(), *out.stride())
    launch(_gradient_kernel, tiles.programs, d_out, values, out, *tables, *sizes, **tiles.shape)
    return settle(dx, out, x)


@triton.jit
def _moments_kernel(
    x,
    means,
    variances,
    rows,
    positions,
    x_outer,
    x_row,
    x_position,
    factor,
    ROWS: tl.constexpr,
    POSITIONS: tl.constexpr,
    UNIT: tl.constexpr,
):
    positions = multiple(positions, UNIT)
    strip, outer, row, first = locate(tl.program_id(0), rows, positions, ROWS, POSITIONS)
    position = first + tl.arange(0, POSITIONS)[None, :]
    inside = (row < rows) & (position < positions)
    values = load_tile(place(x, outer, row, position, x_outer, x_row, x_position, UNIT), inside)
    # Distances from one of the numbers, so that equal numbers have no rounding to add up.
    origin = load_tile(place(x, outer, row, first, x_outer, x_row, x_position, UNIT), row < rows)
    gap = tl.where(inside, values - origin, 0.0)
    count = tl.minimum(positions - first, POSITIONS).to(tl.float32)
    shift = tl.sum(gap, 1, keep_dims=True) / count
    gap = tl.where(inside, gap - shift, 0.0)
    entry = strip * rows + row
    tl.store(means + entry, origin + shift, row < rows)
    var = tl.sum(gap * gap, 1, keep_dims=True) / count
    tl.store(variances + entry, var * factor, row < rows)


@triton.jit
def _normalize_kernel(
    x,
    y,
    centre,
    scale,
    bias,
    rows,
    positions,
    x_outer,
    x_row,
    x_position,
    y_outer,
    y_row,
    y_position,
    ROWS: tl.constexpr,
    POSITIONS: tl.constexpr,
    UNIT: tl.constexpr,
):
    positions = multiple(positions, UNIT)
    _, outer, row, first = locate(backwards(), rows, positions, ROWS, POSITIONS)
    position = first + tl.arange(0, POSITIONS)[None, :]
    inside = (row < rows) & (position < positions)
    entry = outer * rows + row
    values = load_tile(place(x, outer, row, position, x_outer, x_row, x_position, UNIT), inside)
    values -= tl.load(centre + entry, row < rows, other=0.0)
    values *= tl.load(scale + entry, row < rows, other=0.0)
    if bias is not None:
        values += tl.load(bias + row, row < rows, other=0.0)
    y = place(y, outer, row, position, y_outer, y_row, y_position, UNIT)
    store_tile(y, values, inside)


@triton.jit
def _sums_kernel(
    dy,
    x,
    centre,
    totals,
    dots,
    rows,
    positions,
    dy_outer,
    dy_row,
    dy_position,
    x_outer,
    x_row,
    x_position,
    ROWS: tl.constexpr,
    POSITIONS: tl.constexpr,
    UNIT: tl.constexpr,
):
    positions = multiple(positions, UNIT)
    strip, outer, row, first = locate(tl.program_id(0), rows, positions, ROWS, POSITIONS)
    position = first + tl.arange(0, POSITIONS)[None, :]
    inside = (row < rows) & (position < positions)
    d_values = load_tile(
        place(dy, outer, row, position, dy_outer, dy_row, dy_position, UNIT), inside
    )
    values = load_tile(place(x, outer, row, position, x_outer, x_row, x_position, UNIT), inside)
    values -= tl.load(centre + outer * rows + row, row < rows, other=0.0)
    entry = strip * rows + row
    tl.store(totals + entry, tl.sum(d_values, 1, keep_dims=True), row < rows)
    tl.store(dots + entry, tl.sum(d_values * values, 1, keep_dims=True), row < rows)


@triton.jit
def _gradient_kernel(
    dy,
    x,
    dx,
    centre,
    scale,
    slope,
    offset,
    rows,
    positions,
    dy_outer,
    dy_row,
    dy_position,
    x_outer,
    x_row,
    x_position,
    dx_outer,
    dx_row,
    dx_position,
    ROWS: tl.constexpr,
    POSITIONS: tl.constexpr,
    UNIT: tl.constexpr,
):
    positions = multiple(positions, UNIT)
    _, outer, row, first = locate(backwards(), rows, positions, ROWS, POSITIONS)
    position = first + tl.arange(0, POSITIONS)[None, :]
    inside = (row < rows) & (position < positions)
    entry = outer * rows + row
    d_values = load_tile(
        place(dy, outer, row, position, dy_outer, dy_row, dy_position, UNIT), inside
    )
    values = load_tile(place(x, outer, row, position, x_outer, x_row, x_position, UNIT), inside)
    values -= tl.load(centre + entry, row < rows, other=0.0)
    values *= tl.load(slope + entry, row < rows, other=0.0)
    values += d_values * tl.load(scale + entry, row < rows, other=0.0)
    values += tl.load(offset + entry, row < rows, other=0.0)
    dx = place(dx, outer, row, position, dx_outer, dx_row, dx_position, UNIT)
    store_tile(dx, values, inside)
