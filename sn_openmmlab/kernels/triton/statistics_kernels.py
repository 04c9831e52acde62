"""The kernels between the passes of the forward direction; see `buffers.py` for the tables."""

import triton
import triton.language as tl

from sn_openmmlab.kernels.triton.merging import absorb, locate_columns, merge_splits
from sn_openmmlab.kernels.triton.pooling import locate_channels, pool_moments
from sn_openmmlab.kernels.triton.ratios import pick, ratios_at

# Kernels that serve any alignment need no plan for each.
BATCH_POINTERS = ('tables', 'parts', 'running_mean', 'running_var', 'num_batches')
MIX_POINTERS = (
    'tables',
    'given_mean',
    'given_var',
    'mean_control',
    'var_control',
    'num_batches',
)


@triton.jit(do_not_specialize_on_alignment=BATCH_POINTERS)
def batch_kernel(
    tables,
    parts,
    running_mean,
    running_var,
    num_batches,
    momentum,
    samples,
    channels,
    entries,
    span,
    parts_at,
    number_of_parts,
    sample_step,
    split_step,
    splits,
    size,
    positions,
    factor,
    SPLIT: tl.constexpr,
    BATCH: tl.constexpr,
    SAMPLES: tl.constexpr,
    PARTS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Finish the moments of the instances and the batch, for COLUMNS channels of `span` samples.

    If SPLIT, the instances are merged from two tables of `number_of_parts` entries, which start at
    `parts_at` in `parts`, and where samples and splits are the two steps apart; a split has `size`
    of the `positions`, and `factor` multiplies the variances. Else they are in `tables` already. If
    BATCH, `span` is all samples: they are pooled, and the running statistics, (C,) each, move
    towards the result by the share `momentum`, or one over the number of batches where it is None.
    `mix_kernel` counts this one.
    """
    column, exists, first = locate_columns(channels, span, COLUMNS)
    means = tables + entries + entries
    variances = means + entries
    if SPLIT:
        parts += parts_at
    if BATCH:
        some = column < channels * tl.minimum(samples * splits, 1)
        origin = tl.load((parts if SPLIT else means) + column, some, other=0.0)
        mean = tl.zeros((1, COLUMNS), tl.float32)
        var = tl.zeros((1, COLUMNS), tl.float32)
        count = tl.zeros((), tl.float32)
    for start in range(first, tl.minimum(first + span, samples), SAMPLES):
        sample = start + tl.arange(0, SAMPLES).to(tl.int64)[:, None]
        inside = exists & (sample < samples)
        entry = sample * channels + column
        if SPLIT:
            at = sample * sample_step + column
            own_mean, own_var = merge_splits(
                parts,
                parts + number_of_parts,
                at,
                split_step,
                splits,
                size,
                positions,
                inside,
                PARTS,
            )
            own_var = scale_variance(own_var, factor)
            tl.store(means + entry, own_mean, inside)
            tl.store(variances + entry, own_var, inside)
        else:
            own_mean = tl.load(means + entry, inside, other=0.0)
            own_var = tl.load(variances + entry, inside, other=0.0)
        if BATCH:
            number = tl.minimum(samples - start, SAMPLES).to(tl.float32)
            mean, var, count = absorb(mean, var, count, own_mean - origin, own_var, inside, number)
    if BATCH:
        mean += origin
        batch = variances + entries + column
        tl.store(batch, mean, exists)
        tl.store(batch + channels, var, exists)
        if running_mean is not None:
            share = 1 / _next(num_batches) if momentum is None else momentum
            _move(running_mean + column, mean, share, exists)
            _move(running_var + column, var, share, exists)


@triton.jit
def scale_variance(var, factor):
    """Return variances times a factor; 0 for a factor of 0, even where they are infinite."""
    return tl.where(factor > 0, var * factor, 0.0)


@triton.jit
def _next(number):
    return (tl.load(number) + 1).to(tl.float32)


@triton.jit
def _move(running, new, share, exists):
    """Move running statistics of any type; at a share of 1 nothing is kept, not even infinity."""
    before = tl.load(running, exists, other=0.0)
    if running.dtype.element_ty != tl.float64:
        before = before.to(tl.float32)
    kept = tl.where(share < 1, before * (1 - share), 0.0)
    tl.store(running, (kept + new * share).to(running.dtype.element_ty), exists)


@triton.jit(do_not_specialize_on_alignment=MIX_POINTERS)
def mix_kernel(
    tables,
    given_mean,
    given_var,
    mean_control,
    var_control,
    num_batches,
    channels,
    entries,
    size,
    group,
    share,
    eps,
    IN: tl.constexpr,
    GN: tl.constexpr,
    LN: tl.constexpr,
    BN: tl.constexpr,
    SCOPES: tl.constexpr,
    ALONE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Mix the moments of `size` channels of one sample, which are all in the same groups.

    The moments of `'bn'` are the given ones, (C,) each, which are copied into `tables`, or None:
    then they are there. The controls are (C / share, SCOPES). A group of `'gn'` has `group`
    channels. IN, GN, LN and BN are the places of the scopes among the controls, or -1. If ALONE,
    the given moments also stand for those of the instances, which were not computed. A batch is
    counted in `num_batches` unless that is None.
    """
    first, row, column = locate_channels(channels, size)
    mean = tables + entries + entries
    var = mean + entries
    batch = var + entries
    if num_batches is not None:
        is_first = tl.program_id(0) == 0
        tl.store(num_batches, tl.load(num_batches, is_first, other=0) + 1, is_first)
    mean_ratios = ratios_at(mean_control, column, share, SCOPES)
    var_ratios = ratios_at(var_control, column, share, SCOPES)
    if GN >= 0:
        gn_mean, gn_var = pool_moments(mean, var, first - column % group, group, BLOCK)
    if LN >= 0:
        ln_mean, ln_var = pool_moments(mean, var, row, channels, BLOCK)
    for start in range(0, size, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside, entry, channel = at < size, first + at, column + at
        if given_mean is not None:
            bn_mean = tl.load(given_mean + channel, inside, other=0.0).to(tl.float32)
            bn_var = tl.load(given_var + channel, inside, other=0.0).to(tl.float32)
            once = inside & (entry < channels)
            tl.store(batch + channel, bn_mean, once)
            tl.store(batch + channels + channel, bn_var, once)
        elif BN >= 0:
            bn_mean = tl.load(batch + channel, inside, other=0.0)
            bn_var = tl.load(batch + channels + channel, inside, other=0.0)
        if ALONE:
            own_mean, own_var = bn_mean, bn_var
            tl.store(mean + entry, own_mean, inside)
            tl.store(var + entry, own_var, inside)
        else:
            own_mean = tl.load(mean + entry, inside, other=0.0)
            own_var = tl.load(var + entry, inside, other=0.0)
        away = tl.zeros_like(own_mean)
        mixed = tl.zeros_like(own_var)
        if IN >= 0:
            mixed += pick(var_ratios, IN) * own_var
        if GN >= 0:
            away += pick(mean_ratios, GN) * (gn_mean - own_mean)
            mixed += pick(var_ratios, GN) * gn_var
        if LN >= 0:
            away += pick(mean_ratios, LN) * (ln_mean - own_mean)
            mixed += pick(var_ratios, LN) * ln_var
        if BN >= 0:
            away += pick(mean_ratios, BN) * (bn_mean - own_mean)
            mixed += pick(var_ratios, BN) * bn_var
        tl.store(tables + entry, own_mean + away, inside)
        tl.store(tables + entries + entry, tl.rsqrt(mixed + eps), inside)
