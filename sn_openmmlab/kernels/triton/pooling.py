"""What the kernels of the tables share: importance ratios, and pooling along the channels.

A scope's number is its place among the control parameters, or -1 where it is not mixed. As Triton
has no arrays, what belongs to several scopes is a vector of ``MOST_SCOPES`` numbers.
"""

import triton
import triton.language as tl

MOST_SCOPES = tl.constexpr(4)


@triton.jit
def locate_channels(channels, size):
    """The entry of a program's first channel, that of its sample's first, and the channel."""
    first = tl.program_id(0).to(tl.int64) * size
    column = first % channels
    return first, first - column, column


@triton.jit
def importance_ratios(control, SCOPES: tl.constexpr):
    """The softmax of λ or λ′ (Eq. 5), with 0 in the places behind the last scope."""
    place = tl.arange(0, MOST_SCOPES)
    values = tl.load(control + place, place < SCOPES, other=-float('inf')).to(tl.float32)
    powers = tl.exp(values - tl.max(values, 0))
    return powers / tl.sum(powers, 0)


@triton.jit
def pick(ratios, SCOPE: tl.constexpr):
    """The ratio of one scope."""
    return tl.sum(tl.where(tl.arange(0, MOST_SCOPES) == SCOPE, ratios, 0.0), 0)


@triton.jit
def put(value, SCOPE: tl.constexpr):
    """A vector with ``value`` in the place of one scope and 0 elsewhere."""
    return tl.where(tl.arange(0, MOST_SCOPES) == SCOPE, value, 0.0)


@triton.jit
def pool_moments(mean, var, first, size, BLOCK: tl.constexpr):
    """Mean and variance over ``size`` channels (Eq. 4), the first of which is entry ``first``."""
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
    """The gradients of both mixes; see ``channel_gradients`` for what they come from."""
    scale = tl.load(rstd + entry, inside, other=0.0)
    factor = -0.5 * scale * scale
    if weight is not None:
        scale *= tl.load(weight + channel, inside, other=0.0).to(tl.float32)
    d_centre = -tl.load(total + entry, inside, other=0.0) * scale
    return d_centre, tl.load(dot + entry, inside, other=0.0) * scale * factor


@triton.jit
def pool_gradients(total, dot, rstd, weight, first, channel, size, BLOCK: tl.constexpr):
    """Average the gradients of both mixes over ``size`` channels from ``channel`` on."""
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
