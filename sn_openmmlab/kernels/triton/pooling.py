"""Pool tables along the channels in a kernel."""

import triton
import triton.language as tl

from sn_openmmlab.kernels.triton.ratios import pick, ratios_at


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
def mix_gradients(total, dot, rstd, weight, channel, inside):
    """Return the gradients of the mixed mean and variance at some entries.

    `total`, `dot` and `rstd` are theirs, of `channel`, and `weight` is (C,) or None.
    """
    scale = rstd
    if weight is not None:
        scale *= tl.load(weight + channel, inside, other=0.0).to(tl.float32)
    return -total * scale, dot * scale * (-0.5 * rstd * rstd)


@triton.jit
def load_mix_gradients(total, dot, rstd, weight, entry, channel, inside):
    """Return what `mix_gradients` does, from (N, C) tables at `entry`."""
    return mix_gradients(
        tl.load(total + entry, inside, other=0.0),
        tl.load(dot + entry, inside, other=0.0),
        tl.load(rstd + entry, inside, other=0.0),
        weight,
        channel,
        inside,
    )


@triton.jit
def pool_gradients(
    total,
    dot,
    rstd,
    weight,
    mean_control,
    var_control,
    first,
    channel,
    length,
    size,
    share,
    SCOPE: tl.constexpr,
    SCOPES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Average the gradients of both mixes, times the ratios of a scope, over `length` channels.

    See `load_mix_gradients` for the tables and `ratios_at` for the controls. `channel` is that of
    entry `first`, the first one; each `size` channels have the same ratios.
    """
    lane = tl.arange(0, BLOCK)
    d_centre = tl.zeros((), tl.float32)
    d_var = tl.zeros((), tl.float32)
    for begin in range(0, length, size):
        own_centre = tl.zeros((), tl.float32)
        own_var = tl.zeros((), tl.float32)
        for start in range(0, size, BLOCK):
            at = begin + start + lane
            inside = start + lane < size
            d_mean, d_square = load_mix_gradients(
                total, dot, rstd, weight, first + at, channel + at, inside
            )
            own_centre += tl.sum(d_mean, 0)
            own_var += tl.sum(d_square, 0)
        mean_ratios = ratios_at(mean_control, channel + begin, share, SCOPES)
        var_ratios = ratios_at(var_control, channel + begin, share, SCOPES)
        d_centre += pick(mean_ratios, SCOPE) * own_centre
        d_var += pick(var_ratios, SCOPE) * own_var
    return d_centre / length, d_var / length
