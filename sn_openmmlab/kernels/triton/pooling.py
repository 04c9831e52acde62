"""Pool tables along the channels in a kernel."""

import triton
import triton.language as tl


@triton.jit
def locate_channels(channels, size):
    """Return where the `size` channels of this program start.

    Returns:
        The entry of its first channel in an (N, C) table, the entry of its sample's first channel,
        and the first channel itself.
    """
    first = tl.program_id(0).to(tl.int64) * size
    column = first % channels
    return first, first - column, column


@triton.jit
def pool_moments(mean, var, first, size, BLOCK: tl.constexpr):
    """Return mean and variance over `size` channels of (N, C) tables, from entry `first` on.

    The law of total variance, as in `kernels/merge.py` and for the same reason relative to the
    first mean, but in a loop over blocks, within one program.
    """
    origin = tl.load(mean + first)
    lane = tl.arange(0, BLOCK)
    shift = tl.zeros((), tl.float32)
    for start in range(0, size, BLOCK):
        inside = start + lane < size
        gap = tl.load(mean + first + start + lane, inside, other=0.0) - origin
        shift += tl.sum(tl.where(inside, gap, 0.0), 0)
    shift /= size
    spread = tl.zeros((), tl.float32)
    for start in range(0, size, BLOCK):
        inside = start + lane < size
        gap = tl.load(mean + first + start + lane, inside, other=0.0) - origin - shift
        within = tl.load(var + first + start + lane, inside, other=0.0)
        spread += tl.sum(tl.where(inside, within + gap * gap, 0.0), 0)
    return origin + shift, spread / size


@triton.jit
def mix_gradients(total, dot, rstd, weight, entry, channel, inside):
    """Return the gradients of the mixed mean and variance at some entries.

    `total`, `dot` and `rstd` are (N, C) and `weight` is (C,) or None; see `channel_gradients`.
    """
    scale = tl.load(rstd + entry, inside, other=0.0)
    factor = -0.5 * scale * scale
    if weight is not None:
        scale *= tl.load(weight + channel, inside, other=0.0).to(tl.float32)
    d_centre = -tl.load(total + entry, inside, other=0.0) * scale
    return d_centre, tl.load(dot + entry, inside, other=0.0) * scale * factor


@triton.jit
def pool_gradients(total, dot, rstd, weight, first, channel, size, BLOCK: tl.constexpr):
    """Average the gradients of both mixes over `size` channels, from entry `first` on.

    See `mix_gradients` for the shapes; `channel` is the channel of entry `first`.
    """
    lane = tl.arange(0, BLOCK)
    d_centre = tl.zeros((), tl.float32)
    d_var = tl.zeros((), tl.float32)
    for start in range(0, size, BLOCK):
        at = start + lane
        d_mean, d_square = mix_gradients(
            total, dot, rstd, weight, first + at, channel + at, at < size
        )
        d_centre += tl.sum(d_mean, 0)
        d_var += tl.sum(d_square, 0)
    return d_centre / size, d_var / size
