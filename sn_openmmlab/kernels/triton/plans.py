"""Plans: the launches of a pass for inputs of one shape, layout and type, worked out once.

Each launch of a plan is bound to what Triton compiled at its first call. So a plan is only for
calls in which Triton would compile the same: `Key` has what that depends on besides the numbers.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from sn_openmmlab.kernels.contract import Mixture
from sn_openmmlab.kernels.triton import FUSED_SCOPES, tuning
from sn_openmmlab.kernels.triton.buffers import tables_size
from sn_openmmlab.kernels.triton.gradient_kernels import (
    channels_kernel,
    controls_kernel,
    positions_kernel,
)
from sn_openmmlab.kernels.triton.launch import Launch, block, blocks
from sn_openmmlab.kernels.triton.pass_kernels import (
    gradient_kernel,
    moments_kernel,
    normalize_kernel,
    sums_kernel,
)
from sn_openmmlab.kernels.triton.ratios import MOST_SCOPES
from sn_openmmlab.kernels.triton.statistics_kernels import batch_kernel, mix_kernel
from sn_openmmlab.kernels.triton.tiles import Tiles, visit

# A detector has a dozen shapes of maps for each size of its images.
MOST_PLANS = 4096

Shape = tuple[int, ...]
# The device; the types of all tensors, None for those that are not there; and whether the big ones
# start at multiples of 16 bytes, which decides how they are loaded.
Key = Any


class Subject(NamedTuple):
    """What the launches of a backward pass depend on, besides the layouts in memory.

    Attributes:
        shape: of the input, (N, C, *).
        mixture: what was mixed.
        control_shape: of λ and λ′.
        moves: whether the moments of `'bn'` depend on the input.
        divisor: of the gradients of the mixes that were summed over samples.
        key: see `Key`.
    """

    shape: Shape
    mixture: Mixture
    control_shape: Shape
    moves: bool
    divisor: float
    key: tuple[Key, ...]


@dataclass(frozen=True, eq=False, slots=True)
class ForwardPlan:
    """What the forward pass allocates and launches; see the kernels for the arguments.

    Attributes:
        tables: the size of the buffer of that name.
        parts: the size of a buffer for the moments of the splits of rows, which backward need not
            keep; 0 where they are few or none, and `tables` has room for them.
        moments: of `moments_kernel`.
        batch: of `batch_kernel`, or None where `moments` leaves nothing to do.
        mix: of `mix_kernel`.
        normalize: of `normalize_kernel`.
        subject: for the plan of the backward pass.
    """

    tables: int
    parts: int
    moments: Launch
    batch: Launch | None
    mix: Launch
    normalize: Launch
    subject: Subject


@dataclass(frozen=True, eq=False, slots=True)
class BackwardPlan:
    """What the backward pass allocates and launches; see the kernels for the arguments.

    Attributes:
        work: the size of the buffer of that name.
        sums: of `sums_kernel`.
        channels: of `channels_kernel`.
        positions: of `positions_kernel`.
        controls: of `controls_kernel`.
        gradient: of `gradient_kernel`.
    """

    work: int
    sums: Launch
    channels: Launch
    positions: Launch
    controls: Launch
    gradient: Launch


@lru_cache(MOST_PLANS)
def forward_plan(
    shape: Shape,
    strides: Shape,
    mixture: Mixture,
    control_shape: Shape,
    is_given: bool,
    is_alone: bool,
    *key: Key,
) -> ForwardPlan | None:
    """Return the plan of a forward pass, or None where the input has to be copied first.

    Args:
        shape: of the input, (N, C, *).
        strides: of the input.
        mixture: what to mix.
        control_shape: of λ and λ′.
        is_given: whether the moments of `'bn'` are given.
        is_alone: whether they also stand for those of the instances.
        *key: see `Key`.
    """
    read, written = visit(shape, strides), visit(shape, strides, _output_strides(shape, strides))
    if read is None or written is None:
        return None
    samples, channels = shape[:2]
    entries = samples * channels
    is_split, number_of_parts = _parts(read)
    factor = read.positions / max(read.positions - mixture.correction, 1)
    factor = factor if mixture.instance_variance else 0.0
    size = tables_size(entries, channels)
    # Of a whole tile of positions; then a part takes a thousandth of the input's memory at most.
    has_room = is_split and read.tile_positions == tuning.TILE
    parts_at = size if has_room else 0
    place = (parts_at, number_of_parts, 1.0) if is_split else (2 * entries, entries, factor)
    pools = 'bn' in mixture.scopes and not is_given
    parts, rows, columns = _merge_tile(read.splits if is_split else 1, samples)
    layout, places = _mixing(shape, mixture, control_shape)
    return ForwardPlan(
        tables=size + (2 * number_of_parts if has_room else 0),
        parts=2 * number_of_parts if is_split and not has_room else 0,
        moments=_over_tiles(moments_kernel, read, *place),
        batch=Launch(
            batch_kernel,
            blocks(channels, columns) * (1 if pools else blocks(samples, rows)),
            (
                *(samples, channels, entries, samples if pools else rows),
                *(parts_at, number_of_parts, *_part_steps(read, channels), read.splits),
                *(read.tile_positions, read.positions, factor),
                *(is_split, pools, rows, parts, columns),
            ),
        )
        if is_split or pools
        else None,
        mix=Launch(
            mix_kernel,
            entries // layout[0],
            (channels, entries, *layout, float(mixture.eps), *places, is_alone, _lanes(layout)),
        ),
        normalize=_over_tiles(normalize_kernel, written, channels, entries),
        subject=Subject(shape, mixture, control_shape, pools, float(samples), key),
    )


@lru_cache(MOST_PLANS)
def backward_plan(
    subject: Subject, x_strides: Shape, dy_strides: Shape, *key: Key
) -> BackwardPlan | None:
    """Return the plan of a backward pass, or None where the tensors have to be copied first.

    Args:
        subject: the input, and what was done with it.
        x_strides: of the input.
        dy_strides: of the gradient of the output.
        *key: see `Key`.
    """
    shape, mixture, control_shape, moves, divisor, _ = subject
    read = visit(shape, x_strides, dy_strides)
    written = visit(shape, x_strides, dy_strides, _output_strides(shape, x_strides))
    if read is None or written is None:
        return None
    samples, channels = shape[:2]
    entries = samples * channels
    is_split, number_of_parts = _parts(read)
    parts, rows, columns = _merge_tile(read.splits if is_split else 1, samples)
    layout, places = _mixing(shape, mixture, control_shape)
    groups, scopes = _ratio_groups(control_shape), len(mixture.scopes)
    programs, strides = entries // layout[0], channels // layout[0]
    partials_at = 4 * entries + 2 * channels
    partials = programs * MOST_SCOPES.value
    parts_at = partials_at + 2 * partials
    divisors = (float(max(read.positions, 1)), max(read.positions - mixture.correction, 1) / 2)
    return BackwardPlan(
        work=parts_at + (2 * number_of_parts if is_split else 0),
        sums=_over_tiles(
            sums_kernel, read, *((parts_at, number_of_parts) if is_split else (0, entries))
        ),
        channels=Launch(
            channels_kernel,
            blocks(channels, columns),
            (
                *(samples, channels, entries, parts_at, number_of_parts),
                *(*_part_steps(read, channels), read.splits),
                *(is_split, rows, parts, columns),
            ),
        ),
        positions=Launch(
            positions_kernel,
            programs,
            (
                *(channels, entries, *layout, *divisors, divisor),
                *(*places, moves, _lanes(layout)),
            ),
        ),
        controls=Launch(
            controls_kernel,
            groups,
            (
                *(partials_at, partials_at + partials, programs // groups),
                *(strides // groups, strides, scopes),
                block(programs // groups, tuning.MOST_CHANNELS),
            ),
        ),
        gradient=_over_tiles(gradient_kernel, written, channels, entries),
    )


def _output_strides(shape: Shape, strides: Shape) -> Shape:
    """Return the strides of a tensor like the input."""
    return torch.empty_like(torch.empty_strided(shape, strides, device='meta')).stride()


def _over_tiles(kernel: Any, tiles: Tiles, *numbers: float) -> Launch:
    """Return the launch of a kernel whose programs take a tile each."""
    # The moments' factor is behind the strides.
    first, last = numbers[:2], numbers[2:]
    steps = [step for own in tiles.steps for step in own]
    values = (*first, tiles.rows, tiles.positions, *steps, *last, *tiles.constants)
    return Launch(kernel, tiles.programs, values, num_warps=tuning.WARPS)


def _parts(tiles: Tiles) -> tuple[bool, int]:
    """Return whether rows are split, or have no positions, and the number of all splits."""
    return tiles.splits != 1, tiles.outer * tiles.splits * tiles.rows


def _part_steps(tiles: Tiles, channels: int) -> tuple[int, int]:
    """Return how far samples and splits are apart in (outer, splits, rows)."""
    if tiles.rows == channels:
        return tiles.splits * channels, channels
    return channels, tiles.rows


def _merge_tile(splits: int, samples: int) -> tuple[int, int, int]:
    """Return splits, samples and channels of a tile of the kernels that merge them."""
    parts = block(splits, tuning.MOST_PARTS)
    rows = block(samples, tuning.MOST_PARTS // parts)
    return parts, rows, min(tuning.MERGE_TILE // (parts * rows), tuning.MOST_COLUMNS)


def _mixing(
    shape: Shape, mixture: Mixture, control_shape: Shape
) -> tuple[tuple[int, int, int], tuple[int, ...]]:
    """Return sizes, and the constants of the scopes, of the kernels that mix.

    The sizes are the channels of a program, of a group of `'gn'`, and of those that share their
    ratios. The constants are the places of the scopes among the controls, and their number.
    """
    channels, scopes = shape[1], mixture.scopes
    group = channels // (mixture.num_groups if 'gn' in scopes else 1)
    share = channels // _ratio_groups(control_shape)
    places = [scopes.index(scope) if scope in scopes else -1 for scope in FUSED_SCOPES]
    return (math.gcd(group, share), group, share), (*places, len(scopes))


def _ratio_groups(control_shape: Shape) -> int:
    return control_shape[0] if len(control_shape) == 2 else 1


def _lanes(layout: tuple[int, int, int]) -> int:
    """Return how many channels a program that mixes has in registers at a time."""
    return block(layout[0], tuning.MOST_CHANNELS)
