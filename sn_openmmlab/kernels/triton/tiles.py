"""View a big tensor of any strides as (outer, rows, positions), and cut it into tiles.

Positions are visited in the input's order in memory, so that a single stride reaches them all in
every dense format. Otherwise the tensor is copied. Rows are the channels of a sample. Where the
rows of one sample do not fill a tile, the rows of all samples form one long list.
"""

import math
from typing import NamedTuple

from torch import Tensor

from sn_openmmlab.kernels.triton import tuning
from sn_openmmlab.kernels.triton.launch import block, blocks


class Tiles(NamedTuple):
    """Sizes of the visited tensors and of a tile, which lies within one index of `outer`.

    Attributes:
        outer: size of the first dimension.
        rows: size of the second.
        positions: size of the third.
        tile_rows: rows of a tile.
        tile_positions: positions of a tile.
        unit: a power of two that divides the number of positions and each offset of a row's start.
    """

    outer: int
    rows: int
    positions: int
    tile_rows: int
    tile_positions: int
    unit: int

    @property
    def splits(self) -> int:
        """The number of tiles that share the positions of a row."""
        return blocks(self.positions, self.tile_positions)

    @property
    def programs(self) -> int:
        """The number of tiles."""
        return self.outer * self.splits * blocks(self.rows, self.tile_rows)

    @property
    def shape(self) -> dict[str, int]:
        """The constants of the kernels."""
        tile = {'ROWS': self.tile_rows, 'POSITIONS': self.tile_positions}
        return {**tile, 'UNIT': self.unit, 'num_warps': tuning.WARPS}


def visit(x: Tensor, *others: Tensor) -> tuple[Tiles, list[Tensor]]:
    """Return the tiles for `x` and tensors of its shape, and all of them in three dimensions.

    Args:
        x: (N, C, *); its memory format decides the order of the visit.
        others: tensors of the same shape, of any strides.

    Returns:
        The tiles, and the tensors as (outer, rows, positions): views where possible, else copies.
    """
    order = _order(x)
    tensors = [_flat(t.permute(0, 1, *order)) for t in (x, *others)]
    samples, channels, positions = tensors[0].shape
    small = channels * block(positions, tuning.TILE) < tuning.TILE
    if small and all(_rows_follow(t) for t in tensors):
        tensors = [t.view(1, samples * channels, positions) for t in tensors]
    return _tiles(tensors), tensors


def settle(out: Tensor, visited: Tensor, x: Tensor) -> Tensor:
    """Return `out`, filled from its `visited` form if that was a copy.

    Args:
        out: a tensor like `x`.
        visited: what `visit` returned for it, written by a kernel.
        x: the first argument of that call.
    """
    if visited.data_ptr() != out.data_ptr():
        ordered = out.permute(0, 1, *_order(x))
        ordered.copy_(visited.view(ordered.shape))
    return out


def per_row(table: Tensor, tiles: Tiles) -> Tensor:
    """Return a (C,) table with an entry for each of `tiles.rows`."""
    return table.repeat(tiles.rows // table.shape[0])


def _order(x: Tensor) -> list[int]:
    """Return the dimensions of the positions, the largest stride first."""
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
    least = block(rows, tuning.ADJACENT_ROWS) if adjacent else 1
    tile_positions = block(positions, tuning.TILE // least)
    tile_rows = block(rows, tuning.TILE // tile_positions)
    return Tiles(outer, rows, positions, tile_rows, tile_positions, _unit(tensors))


def _unit(tensors: list[Tensor]) -> int:
    """Return the largest power of two up to 16 that divides the rows' lengths and offsets."""
    if any(t.stride(2) != 1 for t in tensors):
        return 1
    steps = (step for t in tensors for step in t.stride()[:2])
    return math.gcd(16, tensors[0].shape[2], *steps)
