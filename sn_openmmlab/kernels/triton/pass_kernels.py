"""The kernels of the passes; each program takes one tile.

The names with `_outer`, `_row` and `_position` are the strides of the big tensors, which are
(outer, rows, positions). `UNIT` divides the number of positions and the other strides: see `Tiles`.
The tables are in the buffers of `buffers.py`, (N, C) each, which is (outer, rows).
"""

import triton
import triton.language as tl

from sn_openmmlab.kernels.triton.addressing import (
    backwards,
    load_tile,
    locate,
    multiple,
    place,
    store_tile,
)
from sn_openmmlab.kernels.triton.statistics_kernels import scale_variance


@triton.jit(do_not_specialize_on_alignment=['out'])
def moments_kernel(
    x,
    out,
    first,
    entries,
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
    """Compute mean and variance of a tile's rows.

    They are written to `out` from entry `first` on, as two tables of `entries` numbers, which are
    (outer, splits, rows). `factor` multiplies the variances.
    """
    positions = multiple(positions, UNIT)
    strip, outer, row, start = locate(tl.program_id(0), rows, positions, ROWS, POSITIONS)
    position = start + tl.arange(0, POSITIONS)[None, :]
    inside = (row < rows) & (position < positions)
    values = load_tile(place(x, outer, row, position, x_outer, x_row, x_position, UNIT), inside)
    # Distances from one of the numbers: those of equal numbers are 0 and add up without rounding.
    origin = load_tile(place(x, outer, row, start, x_outer, x_row, x_position, UNIT), row < rows)
    gap = tl.where(inside, values - origin, 0.0)
    count = tl.minimum(positions - start, POSITIONS).to(tl.float32)
    shift = tl.sum(gap, 1, keep_dims=True) / count
    gap = tl.where(inside, gap - shift, 0.0)
    out += first + strip * rows + row
    tl.store(out, origin + shift, row < rows)
    var = tl.sum(gap * gap, 1, keep_dims=True) / count
    tl.store(out + entries, scale_variance(var, factor), row < rows)


@triton.jit(do_not_specialize_on_alignment=['tables', 'weight', 'bias'])
def normalize_kernel(
    x,
    y,
    tables,
    weight,
    bias,
    channels,
    entries,
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
    """Write `(x - centre) * rstd * weight + bias` of a tile to `y`.

    `weight` and `bias` are (C,) or None.
    """
    positions = multiple(positions, UNIT)
    _, outer, row, start = locate(backwards(), rows, positions, ROWS, POSITIONS)
    position = start + tl.arange(0, POSITIONS)[None, :]
    inside = (row < rows) & (position < positions)
    tables += outer * rows + row
    values = load_tile(place(x, outer, row, position, x_outer, x_row, x_position, UNIT), inside)
    values -= tl.load(tables, row < rows, other=0.0)
    values *= _scale(tables + entries, weight, row, rows, channels)
    if bias is not None:
        values += tl.load(bias + row % channels, row < rows, other=0.0).to(tl.float32)
    y = place(y, outer, row, position, y_outer, y_row, y_position, UNIT)
    store_tile(y, values, inside)


@triton.jit(do_not_specialize_on_alignment=['tables', 'out'])
def sums_kernel(
    dy,
    x,
    tables,
    out,
    first,
    entries,
    rows,
    positions,
    x_outer,
    x_row,
    x_position,
    dy_outer,
    dy_row,
    dy_position,
    ROWS: tl.constexpr,
    POSITIONS: tl.constexpr,
    UNIT: tl.constexpr,
):
    """Compute `Σ dy` and `Σ dy·(x - centre)` of a tile's rows.

    They are written to `out` as the moments are by `moments_kernel`.
    """
    positions = multiple(positions, UNIT)
    strip, outer, row, start = locate(tl.program_id(0), rows, positions, ROWS, POSITIONS)
    position = start + tl.arange(0, POSITIONS)[None, :]
    inside = (row < rows) & (position < positions)
    d_values = load_tile(
        place(dy, outer, row, position, dy_outer, dy_row, dy_position, UNIT), inside
    )
    values = load_tile(place(x, outer, row, position, x_outer, x_row, x_position, UNIT), inside)
    values -= tl.load(tables + outer * rows + row, row < rows, other=0.0)
    out += first + strip * rows + row
    tl.store(out, tl.sum(d_values, 1, keep_dims=True), row < rows)
    tl.store(out + entries, tl.sum(d_values * values, 1, keep_dims=True), row < rows)


@triton.jit(do_not_specialize_on_alignment=['tables', 'work', 'weight'])
def gradient_kernel(
    dy,
    x,
    dx,
    tables,
    work,
    weight,
    channels,
    entries,
    rows,
    positions,
    x_outer,
    x_row,
    x_position,
    dy_outer,
    dy_row,
    dy_position,
    dx_outer,
    dx_row,
    dx_position,
    ROWS: tl.constexpr,
    POSITIONS: tl.constexpr,
    UNIT: tl.constexpr,
):
    """Write `dy * rstd * weight + (x - centre) * slope + offset` of a tile to `dx`."""
    positions = multiple(positions, UNIT)
    _, outer, row, start = locate(backwards(), rows, positions, ROWS, POSITIONS)
    position = start + tl.arange(0, POSITIONS)[None, :]
    inside = (row < rows) & (position < positions)
    entry = outer * rows + row
    tables += entry
    work += entries + entries + entry
    d_values = load_tile(
        place(dy, outer, row, position, dy_outer, dy_row, dy_position, UNIT), inside
    )
    values = load_tile(place(x, outer, row, position, x_outer, x_row, x_position, UNIT), inside)
    values -= tl.load(tables, row < rows, other=0.0)
    values *= tl.load(work, row < rows, other=0.0)
    values += d_values * _scale(tables + entries, weight, row, rows, channels)
    values += tl.load(work + entries, row < rows, other=0.0)
    dx = place(dx, outer, row, position, dx_outer, dx_row, dx_position, UNIT)
    store_tile(dx, values, inside)


@triton.jit
def _scale(rstd, weight, row, rows, channels):
    """Return `rstd * weight` of some rows; `rstd` is where theirs are."""
    scale = tl.load(rstd, row < rows, other=0.0)
    if weight is not None:
        scale *= tl.load(weight + row % channels, row < rows, other=0.0).to(tl.float32)
    return scale
