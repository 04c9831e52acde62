"""How the passes visit a big tensor of any strides: as (outer, rows, positions), in tiles.

Positions are visited in the order in which the input has them in memory, so that they have one
stride in every dense format; a tensor whose positions do not is copied. Rows are the channels of a
sample. Where those of one sample do not fill a tile, the rows of all samples follow one another.
"""

import math
from typing import NamedTuple

from torch import Tensor

from sn_openmmlab.kernels.triton.launch import block, blocks

# Elements and warps of a tile: enough loads in flight per thread, few enough to stay in registers.
TILE = 4096
WARPS = 8
# Rows of a tile that lie side by side in memory: whole memory transactions in every type.
ADJACENT_ROWS = 32


class Tiles(NamedTuple):
    """Sizes of the visited tensors and of a tile, which lies within one index of ``outer``.

    ``unit`` divides the number of positions, and where the rows start.
    """

    outer: int
    rows: int
    positions: int
    tile_rows: int
    tile_positions: int
    unit: int

    @property
    def splits(self) -> int:
        """How many tiles share the positions of a row."""
        return blocks(self.positions, self.tile_positions)

    @property
    def programs(self) -> int:
        """The number of tiles."""
        return self.outer * self.splits * blocks(self.rows, self.tile_rows)

    @property
    def shape(self) -> dict[str, int]:
        """The constants of the kernels."""
        tile = {'ROWS': self.tile_rows, 'POSITIONS': self.tile_positions}
        return {**tile, 'UNIT': self.unit, 'num_warps': WARPS}


def visit(x: Tensor, *others: Tensor) -> tuple[Tiles, list[Tensor]]:
    """Return the tiles for ``x`` and tensors of its shape, and all of them in three dimensions.

    Args:
        x: (N, C, *), whose format decides the order of the visit.
        others: in the same shape, of any strides.

    Returns:
        The tiles, and views, or else copies, in the shape (outer, rows, positions).
    """
    order = _order(x)
    tensors = [_flat(t.permute(0, 1, *order)) for t in (x, *others)]
    samples, channels, positions = tensors[0].shape
    small = channels * block(positions, TILE) < TILE
    if small and all(_rows_follow(t) for t in tensors):
        tensors = [t.view(1, samples * channels, positions) for t in tensors]
    return _tiles(tensors), tensors


def settle(out: Tensor, visited: Tensor, x: Tensor) -> Tensor:
    """Return ``out``, filled from the ``visited`` form of it if that was a copy.

    Args:
        out: like ``x``.
        visited: the result of :func:`visit` for it, written by a kernel.
        x: the first argument of that call.
    """
    if visited.data_ptr() != out.data_ptr():
        ordered = out.permute(0, 1, *_order(x))
        ordered.copy_(visited.view(ordered.shape))
    return out


def per_row(table: Tensor, tiles: Tiles) -> Tensor:
    """A (C,) table with an entry for each of ``tiles.rows``."""
    return table.repeat(tiles.rows // table.shape[0])


def _order(x: Tensor) -> list[int]:
    """The dimensions of the positions, those with the largest stride first."""
    return sorted(range(2, x.dim()), key=x.stride, reverse=True)


def _flat(x: Tensor) -> Tensor:
    return x.flatten(2) if x.dim() > 2 else x.unsqueeze(-1)


def _rows_follow(x: Tensor) -> bool:
    samples, channels, _ = x.shape
    return samples == 1 or channels == 1 or x.stride(0) == channels * x.stride(1)


def _tiles(tensors: list[Tensor]) -> Tiles:
    x = tensors[0]
    outer, rows, positions = x.shape
    adjacent = rows > 1 and positions > 1 and x.stride(1) < x.stride(2)
    least = block(rows, ADJACENT_ROWS) if adjacent else 1
    tile_positions = block(positions, TILE // least)
    tile_rows = block(rows, TILE // tile_positions)
    return Tiles(outer, rows, positions, tile_rows, tile_positions, _unit(tensors))


def _unit(tensors: list[Tensor]) -> int:
    """The largest power of two up to 16 that divides the length of all rows and their starts."""
    if any(t.stride(2) != 1 for t in tensors):
        return 1
    steps = (step for t in tensors for step in t.stride()[:2])
    return math.gcd(16, tensors[0].shape[2], *steps)
