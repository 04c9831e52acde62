"""The kernels of `channel_gradients` and `position_gradients`.

See `aten/tables.py` for the equations of dμ and dσ², which `positions_kernel` computes.
"""

import triton
import triton.language as tl

from sn_openmmlab.kernels.triton.pooling import (
    locate_channels,
    mix_gradients,
    pool_gradients,
    pool_moments,
)
from sn_openmmlab.kernels.triton.ratios import (
    MOST_SCOPES,
    importance_ratios,
    pick,
    put,
    ratios_at,
)


@triton.jit
def channels_kernel(
    total,
    dot,
    rstd,
    weight,
    d_weight,
    d_bias,
    d_centre,
    d_var,
    samples,
    channels,
    PARTS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Sum over the samples, for COLUMNS channels.

    `total`, `dot` and `rstd` are (N, C); `weight` is (C,) or None; the four results are (C,).
    """
    channel = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    sums_weight = tl.zeros((1, COLUMNS), tl.float32)
    sums_bias = tl.zeros((1, COLUMNS), tl.float32)
    sums_centre = tl.zeros((1, COLUMNS), tl.float32)
    sums_var = tl.zeros((1, COLUMNS), tl.float32)
    for start in range(0, samples, PARTS):
        sample = start + tl.arange(0, PARTS).to(tl.int64)[:, None]
        inside = (sample < samples) & (channel < channels)
        entry = sample * channels + channel
        own_dot = tl.load(dot + entry, inside, other=0.0)
        own_dot *= tl.load(rstd + entry, inside, other=0.0)
        own_total = tl.load(total + entry, inside, other=0.0)
        d_mean, d_square = mix_gradients(total, dot, rstd, weight, entry, channel, inside)
        sums_weight += tl.sum(own_dot, 0, keep_dims=True)
        sums_bias += tl.sum(own_total, 0, keep_dims=True)
        sums_centre += tl.sum(d_mean, 0, keep_dims=True)
        sums_var += tl.sum(d_square, 0, keep_dims=True)
    tl.store(d_weight + channel, sums_weight, channel < channels)
    tl.store(d_bias + channel, sums_bias, channel < channels)
    tl.store(d_centre + channel, sums_centre, channel < channels)
    tl.store(d_var + channel, sums_var, channel < channels)


@triton.jit
def positions_kernel(
    total,
    dot,
    mean,
    var,
    centre,
    rstd,
    batch_mean,
    batch_var,
    batch_d_centre,
    batch_d_var,
    weight,
    mean_control,
    var_control,
    slope,
    offset,
    mean_partials,
    var_partials,
    channels,
    size,
    group,
    share,
    count,
    half_divisor,
    IN: tl.constexpr,
    GN: tl.constexpr,
    LN: tl.constexpr,
    BN: tl.constexpr,
    SCOPES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute slope and offset for `size` channels of one sample, which are in the same groups.

    `total`, `dot`, `mean`, `var`, `centre`, `rstd`, `slope` and `offset` are (N, C); the batch's
    moments and gradients and `weight` are (C,), or None; the controls are (C / share, SCOPES). The
    partial gradients of the ratios are (programs, MOST_SCOPES). A group of `'gn'` has `group`
    channels. `count` is the number of positions, and `half_divisor` half the divisor of the
    instance variance. IN, GN, LN and BN are the places of the scopes among the controls, or -1.
    """
    first, row, column = locate_channels(channels, size)
    mean_ratios = ratios_at(mean_control, column, share, SCOPES)
    var_ratios = ratios_at(var_control, column, share, SCOPES)
    mean_sums = tl.zeros((MOST_SCOPES,), tl.float32)
    var_sums = tl.zeros((MOST_SCOPES,), tl.float32)
    if GN >= 0:
        before = column % group
        gn_mean, gn_var = pool_moments(mean, var, first - before, group, BLOCK)
        gn_d_centre, gn_d_var = pool_gradients(
            total,
            dot,
            rstd,
            weight,
            mean_control,
            var_control,
            first - before,
            column - before,
            group,
            size,
            share,
            GN,
            SCOPES,
            BLOCK,
        )
    if LN >= 0:
        ln_mean, ln_var = pool_moments(mean, var, row, channels, BLOCK)
        ln_d_centre, ln_d_var = pool_gradients(
            total,
            dot,
            rstd,
            weight,
            mean_control,
            var_control,
            row,
            0,
            channels,
            size,
            share,
            LN,
            SCOPES,
            BLOCK,
        )
    for start in range(0, size, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside, entry, channel = at < size, first + at, column + at
        own_mean = tl.load(mean + entry, inside, other=0.0)
        own_var = tl.load(var + entry, inside, other=0.0)
        d_centre, d_var = mix_gradients(total, dot, rstd, weight, entry, channel, inside)
        to_mean = pick(mean_ratios, IN) * d_centre
        to_var = pick(var_ratios, IN) * d_var
        if GN >= 0:
            gap = own_mean - gn_mean
            mean_sums += put(-tl.sum(d_centre * gap, 0), GN)
            var_sums += put(tl.sum(d_var * (gn_var - own_var), 0), GN)
            to_mean += gn_d_centre + 2 * gn_d_var * gap
            to_var += gn_d_var
        if LN >= 0:
            gap = own_mean - ln_mean
            mean_sums += put(-tl.sum(d_centre * gap, 0), LN)
            var_sums += put(tl.sum(d_var * (ln_var - own_var), 0), LN)
            to_mean += ln_d_centre + 2 * ln_d_var * gap
            to_var += ln_d_var
        if BN >= 0:
            gap = own_mean - tl.load(batch_mean + channel, inside, other=0.0).to(tl.float32)
            far = tl.load(batch_var + channel, inside, other=0.0).to(tl.float32) - own_var
            mean_sums += put(-tl.sum(d_centre * gap, 0), BN)
            var_sums += put(tl.sum(d_var * far, 0), BN)
            if batch_d_centre is not None:
                bn_d_centre = tl.load(batch_d_centre + channel, inside, other=0.0)
                bn_d_var = tl.load(batch_d_var + channel, inside, other=0.0)
                bn_d_var *= pick(var_ratios, BN)
                to_mean += pick(mean_ratios, BN) * bn_d_centre + 2 * bn_d_var * gap
                to_var += bn_d_var
        own_slope = to_var / half_divisor
        away = tl.load(centre + entry, inside, other=0.0) - own_mean
        tl.store(slope + entry, own_slope, inside)
        tl.store(offset + entry, to_mean / count + away * own_slope, inside)
    place = tl.program_id(0) * MOST_SCOPES + tl.arange(0, MOST_SCOPES)
    tl.store(mean_partials + place, mean_sums)
    tl.store(var_partials + place, var_sums)


@triton.jit
def controls_kernel(
    mean_partials,
    var_partials,
    mean_control,
    var_control,
    d_mean_control,
    d_var_control,
    rows,
    parts,
    strides,
    SCOPES: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Compute the gradients of λ and λ′ of one group of channels with ratios of its own.

    The partial gradients are (samples, strides, MOST_SCOPES) each, of which a group has `parts`
    adjacent ones per sample, `rows` in all; the controls and their gradients are (G, SCOPES).
    """
    group = tl.program_id(0)
    at = group * SCOPES
    mean_partials += group * parts * MOST_SCOPES
    var_partials += group * parts * MOST_SCOPES
    mean_control += at
    var_control += at
    d_mean_control += at
    d_var_control += at
    _control_gradient(
        mean_partials, mean_control, d_mean_control, rows, parts, strides, SCOPES, ROWS
    )
    _control_gradient(var_partials, var_control, d_var_control, rows, parts, strides, SCOPES, ROWS)


@triton.jit
def _control_gradient(
    partials,
    control,
    d_control,
    rows,
    parts,
    strides,
    SCOPES: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Sum the gradients of the ratios over the programs, and pass them through the softmax."""
    place = tl.arange(0, MOST_SCOPES)
    d_ratios = tl.zeros((MOST_SCOPES,), tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)[:, None]
        entry = (row // parts * strides + row % parts) * MOST_SCOPES + place[None, :]
        d_ratios += tl.sum(tl.load(partials + entry, row < rows, other=0.0), 0)
    ratios = importance_ratios(control, SCOPES)
    gradient = ratios * (d_ratios - tl.sum(ratios * d_ratios, 0))
    tl.store(d_control + place, gradient, place < SCOPES)
