"""Merge the results of several parts: the splits of a row, or the samples of a batch."""

import triton
import triton.language as tl
from torch import Tensor

from sn_openmmlab.kernels.triton import tuning
from sn_openmmlab.kernels.triton.launch import block, blocks, launch


def merge_moments(means: Tensor, variances: Tensor, size: int, total: int, factor: float) -> Tensor:
    """Return mean and variance of sets of numbers from those of their parts (Chan et al.).

    Args:
        means: (outer, parts, columns), float32.
        variances: (outer, parts, columns), float32; each divides by the size of its part.
        size: the number of elements of every part but the last.
        total: the number of elements of the whole.
        factor: multiplies the variance in the end.

    Returns:
        Mean and variance, (2, outer, columns); 0 where there are no parts.
    """
    outer, parts, columns = means.shape
    merged = means.new_empty((2, outer, columns))
    programs, tile = _tiles(means)
    arguments = (means, variances, *merged, parts, columns, size, max(total, 1), factor)
    launch(_merge_kernel, programs, *arguments, **tile)
    return merged


def merge_sums(parts: Tensor) -> Tensor:
    """Add up (outer, parts, columns), float32, to (outer, columns)."""
    total = parts.new_empty((parts.shape[0], parts.shape[2]))
    programs, tile = _tiles(parts)
    launch(_add_kernel, programs, parts, total, *parts.shape[1:], **tile)
    return total


def tile_of(parts: int) -> dict[str, int]:
    """Return the constants of a kernel whose programs each reduce `parts` of a block of columns."""
    tile_parts = block(parts, tuning.MOST_PARTS)
    columns = min(tuning.MERGE_TILE // tile_parts, tuning.MOST_COLUMNS)
    return {'PARTS': tile_parts, 'COLUMNS': columns}


def _tiles(parts: Tensor) -> tuple[int, dict[str, int]]:
    tile = tile_of(parts.shape[1])
    return parts.shape[0] * blocks(parts.shape[2], tile['COLUMNS']), tile


@triton.jit
def _merge_kernel(
    means,
    variances,
    mean,
    var,
    parts,
    columns,
    size,
    total,
    factor,
    PARTS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Merge COLUMNS columns of one outer index.

    `means` and `variances` are (outer, parts, columns); `mean` and `var` are (outer, columns). The
    law of total variance, as in `kernels/merge.py`, but over blocks of parts, within one program.
    """
    outer, column, exists = _locate(columns, COLUMNS)
    first = outer * parts * columns + column
    # Means as distances from the first of them, so that equal ones have no rounding to add up.
    origin = tl.load(means + first, column < columns * tl.minimum(parts, 1), other=0.0)
    shift = tl.zeros((1, COLUMNS), tl.float32)
    for start in range(0, parts, PARTS):
        entry, share, inside = _parts(start, first, exists, parts, columns, size, total, PARTS)
        gap = tl.load(means + entry, inside, other=0.0) - origin
        shift += tl.sum(tl.where(inside, share * gap, 0.0), 0, keep_dims=True)
    spread = tl.zeros((1, COLUMNS), tl.float32)
    for start in range(0, parts, PARTS):
        entry, share, inside = _parts(start, first, exists, parts, columns, size, total, PARTS)
        gap = tl.load(means + entry, inside, other=0.0) - origin - shift
        within = tl.load(variances + entry, inside, other=0.0)
        spread += tl.sum(tl.where(inside, share * (within + gap * gap), 0.0), 0, keep_dims=True)
    tl.store(mean + outer * columns + column, origin + shift, exists)
    tl.store(var + outer * columns + column, spread * factor, exists)


@triton.jit
def _add_kernel(values, total, parts, columns, PARTS: tl.constexpr, COLUMNS: tl.constexpr):
    """Add up COLUMNS columns of one outer index: (outer, parts, columns) to (outer, columns)."""
    outer, column, exists = _locate(columns, COLUMNS)
    sums = tl.zeros((1, COLUMNS), tl.float32)
    for start in range(0, parts, PARTS):
        part = start + tl.arange(0, PARTS)[:, None]
        entry = (outer * parts + part) * columns + column
        numbers = tl.load(values + entry, exists & (part < parts), other=0.0)
        sums += tl.sum(numbers, 0, keep_dims=True)
    tl.store(total + outer * columns + column, sums, exists)


@triton.jit
def _locate(columns, COLUMNS: tl.constexpr):
    """Return the outer index, this program's columns, [1, COLUMNS], and which of them exist."""
    program = tl.program_id(0).to(tl.int64)
    column_blocks = tl.cdiv(columns, COLUMNS)
    column = program % column_blocks * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    return program // column_blocks, column, column < columns


@triton.jit
def _parts(start, first, exists, parts, columns, size, total, PARTS: tl.constexpr):
    """Return the entries of PARTS parts, their shares of the whole, and which of them exist."""
    part = start + tl.arange(0, PARTS).to(tl.int64)[:, None]
    share = tl.minimum(total - part * size, size).to(tl.float32) / total
    return first + part * columns, share, exists & (part < parts)
