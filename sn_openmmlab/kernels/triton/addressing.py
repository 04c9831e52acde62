"""Locate, load and store the tile of a program."""

import triton
import triton.language as tl


@triton.jit
def locate(program, rows, positions, ROWS: tl.constexpr, POSITIONS: tl.constexpr):
    """Return where a program's tile lies, in 64 bits for tensors of more than 2^31 elements.

    Returns:
        The strip, which numbers the splits of all outer indices; the outer index; the rows,
        [ROWS, 1]; the first position.
    """
    row_blocks = tl.cdiv(rows, ROWS)
    program = program.to(tl.int64)
    strip = program // row_blocks
    splits = tl.cdiv(positions, POSITIONS)
    row = program % row_blocks * ROWS + tl.arange(0, ROWS)[:, None]
    return strip, strip // splits, row, strip % splits * POSITIONS


@triton.jit
def backwards():
    """Return the program's number counted from the end.

    The pass before ended there, so the end may still be in the cache.
    """
    return tl.num_programs(0) - 1 - tl.program_id(0)


@triton.jit
def multiple(number, UNIT: tl.constexpr):
    """Return `number` in a form that tells the compiler that `UNIT` divides it.

    By itself Triton only detects multiples of 16, and loads one element at a time otherwise.
    """
    return number // UNIT * UNIT


@triton.jit
def place(x, outer, row, position, outer_step, row_step, position_step, UNIT: tl.constexpr):
    """Return pointers to the elements of a tile of `x`, (outer, rows, positions)."""
    x += outer * multiple(outer_step, UNIT) + row * multiple(row_step, UNIT)
    return x + position * position_step


@triton.jit
def store_tile(x, values, inside):
    """Store a tile in the type that `x` points to."""
    tl.store(x, values.to(x.dtype.element_ty), inside)


@triton.jit
def load_tile(x, inside):
    """Return a tile in float32, with 0 where it is not `inside`."""
    return tl.load(x, inside, other=0.0).to(tl.float32)
