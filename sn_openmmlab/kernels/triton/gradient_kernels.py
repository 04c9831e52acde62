"""The kernels between the passes of the backward direction; see `buffers.py` for the tables.

See `aten/tables.py` for the equations of dμ and dσ², which `positions_kernel` computes.
"""

import triton
import triton.language as tl

from sn_openmmlab.kernels.triton.merging import add_splits, locate_columns
from sn_openmmlab.kernels.triton.pooling import (
    load_mix_gradients,
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

# Kernels that serve any alignment need no plan for each.
CHANNELS_POINTERS = ('work', 'tables', 'weight', 'd_weight', 'd_bias')
POSITIONS_POINTERS = ('work', 'tables', 'weight', 'mean_control', 'var_control')
CONTROLS_POINTERS = ('work', 'mean_control', 'var_control', 'd_mean_control', 'd_var_control')


@triton.jit(do_not_specialize_on_alignment=CHANNELS_POINTERS)
def channels_kernel(
    work,
    tables,
    weight,
    d_weight,
    d_bias,
    samples,
    channels,
    entries,
    parts_at,
    number_of_parts,
    sample_step,
    split_step,
    splits,
    SPLIT: tl.constexpr,
    SAMPLES: tl.constexpr,
    PARTS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Sum over all samples, for COLUMNS channels.

    If SPLIT, the sums of the instances are merged first from two tables of `number_of_parts`
    entries each, which start at `parts_at` and where samples and splits are the two steps apart.
    `weight` and its gradient `d_weight`, and `d_bias`, are (C,) or None.
    """
    column, exists, first = locate_columns(channels, samples, COLUMNS)
    totals, dots, rstds = work, work + entries, tables + entries
    sums_weight = tl.zeros((1, COLUMNS), tl.float32)
    sums_bias = tl.zeros((1, COLUMNS), tl.float32)
    sums_mean = tl.zeros((1, COLUMNS), tl.float32)
    sums_var = tl.zeros((1, COLUMNS), tl.float32)
    for start in range(first, samples, SAMPLES):
        sample = start + tl.arange(0, SAMPLES).to(tl.int64)[:, None]
        inside = exists & (sample < samples)
        entry = sample * channels + column
        if SPLIT:
            at = parts_at + sample * sample_step + column
            total = add_splits(work, at, split_step, splits, inside, PARTS)
            dot = add_splits(work + number_of_parts, at, split_step, splits, inside, PARTS)
            tl.store(totals + entry, total, inside)
            tl.store(dots + entry, dot, inside)
        else:
            total = tl.load(totals + entry, inside, other=0.0)
            dot = tl.load(dots + entry, inside, other=0.0)
        rstd = tl.load(rstds + entry, inside, other=0.0)
        d_mean, d_var = mix_gradients(total, dot, rstd, weight, column, exists)
        sums_weight += tl.sum(dot * rstd, 0, keep_dims=True)
        sums_bias += tl.sum(total, 0, keep_dims=True)
        sums_mean += tl.sum(d_mean, 0, keep_dims=True)
        sums_var += tl.sum(d_var, 0, keep_dims=True)
    if d_weight is not None:
        tl.store(d_weight + column, sums_weight.to(d_weight.dtype.element_ty), exists)
    if d_bias is not None:
        tl.store(d_bias + column, sums_bias.to(d_bias.dtype.element_ty), exists)
    batch = dots + entries + entries + entries + column
    tl.store(batch, sums_mean, exists)
    tl.store(batch + channels, sums_var, exists)


@triton.jit(do_not_specialize_on_alignment=POSITIONS_POINTERS)
def positions_kernel(
    work,
    tables,
    weight,
    mean_control,
    var_control,
    channels,
    entries,
    size,
    group,
    share,
    positions,
    half_divisor,
    samples,
    IN: tl.constexpr,
    GN: tl.constexpr,
    LN: tl.constexpr,
    BN: tl.constexpr,
    SCOPES: tl.constexpr,
    MOVES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute slope and offset for `size` channels of one sample, which are in the same groups.

    `weight` is (C,) or None; the controls are (C / share, SCOPES). A group of `'gn'` has `group`
    channels. `half_divisor` is half the divisor of the instance variance. IN, GN, LN and BN are the
    places of the scopes among the controls, or -1. If MOVES, the moments of `'bn'` depend on the
    input, and their gradients in `work` are sums over `samples`.
    """
    first, row, column = locate_channels(channels, size)
    total, dot, rstd = work, work + entries, tables + entries
    mean = rstd + entries
    var = mean + entries
    batch = var + entries
    slope = dot + entries
    offset = slope + entries
    batch_gradients = offset + entries
    partials = batch_gradients + channels + channels
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
        d_centre, d_var = load_mix_gradients(total, dot, rstd, weight, entry, channel, inside)
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
            gap = own_mean - tl.load(batch + channel, inside, other=0.0)
            far = tl.load(batch + channels + channel, inside, other=0.0) - own_var
            mean_sums += put(-tl.sum(d_centre * gap, 0), BN)
            var_sums += put(tl.sum(d_var * far, 0), BN)
            if MOVES:
                bn_d_centre = tl.load(batch_gradients + channel, inside, other=0.0) / samples
                bn_d_var = tl.load(batch_gradients + channels + channel, inside, other=0.0)
                bn_d_var *= pick(var_ratios, BN) / samples
                to_mean += pick(mean_ratios, BN) * bn_d_centre + 2 * bn_d_var * gap
                to_var += bn_d_var
        own_slope = to_var / half_divisor
        away = tl.load(tables + entry, inside, other=0.0) - own_mean
        tl.store(slope + entry, own_slope, inside)
        tl.store(offset + entry, to_mean / positions + away * own_slope, inside)
    place = tl.program_id(0).to(tl.int64) * MOST_SCOPES + tl.arange(0, MOST_SCOPES)
    tl.store(partials + place, mean_sums)
    tl.store(partials + tl.num_programs(0).to(tl.int64) * MOST_SCOPES + place, var_sums)


@triton.jit(do_not_specialize_on_alignment=CONTROLS_POINTERS)
def controls_kernel(
    work,
    mean_control,
    var_control,
    d_mean_control,
    d_var_control,
    partials_at,
    var_partials_at,
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
    group = tl.program_id(0).to(tl.int64)
    partials = work + group * parts * MOST_SCOPES
    _control_gradient(
        partials + partials_at,
        mean_control + group * SCOPES,
        d_mean_control + group * SCOPES,
        rows,
        parts,
        strides,
        SCOPES,
        ROWS,
    )
    _control_gradient(
        partials + var_partials_at,
        var_control + group * SCOPES,
        d_var_control + group * SCOPES,
        rows,
        parts,
        strides,
        SCOPES,
        ROWS,
    )


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
    gradient = gradient.to(d_control.dtype.element_ty)
    tl.store(d_control + place, gradient, place < SCOPES)
