"""View big tensors of one shape as (outer, rows, positions), and cut them into tiles.

Positions are visited in the input's order in memory, so that a single stride reaches them all in
every dense format. Rows are the channels of a sample. Where the rows of one sample do not fill a
tile, the rows of all samples form one long list. Only shapes and strides are looked at here.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from sn_openmmlab.kernels.triton import tuning
from sn_openmmlab.kernels.triton.launch import block, blocks

Steps = tuple[int, int, int]


class Tiles(NamedTuple):
    """Sizes of the visited tensors and of a tile, which lies within one index of `outer`.

    Attributes:
        outer: size of the first dimension.
        rows: size of the second.
        positions: size of the third.
        tile_rows: rows of a tile.
        tile_positions: positions of a tile.
        unit: a power of two that divides the number of positions and each offset of a row's start.
        steps: the strides of the three dimensions, for each tensor.
    """

    outer: int
    rows: int
    positions: int
    tile_rows: int
    tile_positions: int
    unit: int
    steps: tuple[Steps, ...]

    @property
    def splits(self) -> int:
        """The number of tiles that share the positions of a row."""
        return blocks(self.positions, self.tile_positions)

    @property
    def programs(self) -> int:
        """The number of tiles."""
        return self.outer * self.splits * blocks(self.rows, self.tile_rows)

    @property
    def constants(self) -> tuple[int, int, int]:
        """ROWS, POSITIONS and UNIT of the kernels."""
        return self.tile_rows, self.tile_positions, self.unit


def visit(shape: Sequence[int], *strides: Sequence[int]) -> Tiles | None:
    """Return the tiles for tensors of `shape`, (N, C, *); None if one of them had to be copied.

    Args:
        shape: of all tensors.
        strides: of each; the first ones decide the order of the visit.
    """
    samples, channels, *sizes = shape
    positions = math.prod(sizes)
    order = sorted(range(2, len(shape)), key=lambda dim: strides[0][dim], reverse=True)
    found = [_position_step(shape, own, order) for own in strides]
    if None in found:
        return None
    steps = [(*own[:2], step) for own, step in zip(strides, found, strict=True)]
    small = channels * block(positions, tuning.TILE) < tuning.TILE
    if small and all(_rows_follow(shape, own) for own in steps):
        # One sample's channels, or else the samples, give the distance of the rows.
        steps = [(0, own[0] if channels == 1 else own[1], own[2]) for own in steps]
        return _tiles(1, samples * channels, positions, steps)
    return _tiles(samples, channels, positions, steps)


def _position_step(shape: Sequence[int], strides: Sequence[int], order: list[int]) -> int | None:
    """Return the stride that reaches all positions in an order of their dimensions, or None."""
    step, length = None, 1
    for dim in reversed(order):
        if shape[dim] <= 1:
            continue
        if step is None:
            step = strides[dim]
        elif strides[dim] != step * length:
            return None
        length *= shape[dim]
    return 1 if step is None else step


def _rows_follow(shape: Sequence[int], steps: Steps) -> bool:
    samples, channels = shape[:2]
    return samples == 1 or channels == 1 or steps[0] == channels * steps[1]


def _tiles(outer: int, rows: int, positions: int, steps: list[Steps]) -> Tiles:
    _, row_step, position_step = steps[0]
    adjacent = rows > 1 and positions > 1 and row_step < position_step
    least = block(rows, tuning.ADJACENT_ROWS) if adjacent else 1
    tile_positions = block(positions, tuning.TILE // least)
    tile_rows = block(rows, tuning.TILE // tile_positions)
    unit = _unit(positions, steps)
    return Tiles(outer, rows, positions, tile_rows, tile_positions, unit, tuple(steps))


def _unit(positions: int, steps: list[Steps]) -> int:
    """Return the largest power of two up to 16 that divides the rows' lengths and offsets."""
    if any(step != 1 for *_, step in steps):
        return 1
    return math.gcd(16, positions, *(step for own in steps for step in own[:2]))
