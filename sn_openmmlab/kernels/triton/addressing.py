"""Where the tile of a program lies, and the numbers in it."""

import triton
import triton.language as tl


@triton.jit
def locate(program, rows, positions, ROWS: tl.constexpr, POSITIONS: tl.constexpr):
    """Return where a program's tile lies; 64 bits, for tensors of more than 2^31 elements.

    Returns:
        The strip, which counts the splits of all outer indices; the outer index; the rows,
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
    """The program's number from the end.

    The pass before went from the start, so that what lies at the end may still be in the cache.
    """
    return tl.num_programs(0) - 1 - tl.program_id(0)


@triton.jit
def multiple(number, UNIT: tl.constexpr):
    """``number``, which ``UNIT`` divides, in a form that tells the compiler so.

    By itself Triton sees only whether 16 divides a number; without that it loads one element at a
    time.
    """
    return number // UNIT * UNIT


@triton.jit
def place(x, outer, row, position, outer_step, row_step, position_step, UNIT: tl.constexpr):
    """Pointers to the elements of a tile of ``x``."""
    x += outer * multiple(outer_step, UNIT) + row * multiple(row_step, UNIT)
    return x + position * position_step


@triton.jit
def store_tile(x, values, inside):
    """Write a tile, in the type that ``x`` points to."""
    tl.store(x, values.to(x.dtype.element_ty), inside)


@triton.jit
def load_tile(x, inside):
    """Return a tile in float32, with 0 where it is not ``inside``."""
    return tl.load(x, inside, other=0.0).to(tl.float32)
