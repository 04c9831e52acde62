"""The kernels of the passes; each program takes one tile.

The names with `_outer`, `_row` and `_position` are the strides of the tensors. `UNIT` divides the
number of positions and the other strides: see `Tiles`.
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


@triton.jit
def moments_kernel(
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
    """Compute mean and variance of a tile's rows.

    `x` is (outer, rows, positions); `means` and `variances` are (outer, splits, rows). `factor`
    multiplies the variances.
    """
    positions = multiple(positions, UNIT)
    strip, outer, row, first = locate(tl.program_id(0), rows, positions, ROWS, POSITIONS)
    position = first + tl.arange(0, POSITIONS)[None, :]
    inside = (row < rows) & (position < positions)
    values = load_tile(place(x, outer, row, position, x_outer, x_row, x_position, UNIT), inside)
    # Distances from one of the numbers: those of equal numbers are 0 and add up without rounding.
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
def normalize_kernel(
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
    """Write `(x - centre) * scale + bias` of a tile to `y`.

    `x` and `y` are (outer, rows, positions); `centre` and `scale` are (outer, rows); `bias` is
    (rows,) or None.
    """
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
def sums_kernel(
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
    """Compute `Σ dy` and `Σ dy·(x - centre)` of a tile's rows.

    `dy` and `x` are (outer, rows, positions); `centre` is (outer, rows); `totals` and `dots` are
    (outer, splits, rows).
    """
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
def gradient_kernel(
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
    """Write `dy * scale + (x - centre) * slope + offset` of a tile to `dx`.

    `dy`, `x` and `dx` are (outer, rows, positions); `centre`, `scale`, `slope` and `offset` are
    (outer, rows).
    """
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
