"""Merge the results of several parts in a kernel: the splits of a row, the samples of a batch.

The law of total variance, as in `kernels/merge.py`. Means are distances from one of them, so that
equal ones have no rounding to add up, whatever their common offset is.
"""

import triton
import triton.language as tl


@triton.jit
def locate_columns(channels, span, COLUMNS: tl.constexpr):
    """Return what a program of the kernels that loop over samples has to do.

    Returns:
        Its channels, [1, COLUMNS]; which of them exist; its first sample, of `span`.
    """
    column_blocks = tl.cdiv(channels, COLUMNS)
    program = tl.program_id(0)
    column = program % column_blocks * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    return column, column < channels, program // column_blocks * span


@triton.jit
def merge_splits(means, variances, first, step, splits, size, total, exists, PARTS: tl.constexpr):
    """Return mean and variance of rows, [SAMPLES, COLUMNS] each, from those of their splits.

    `first` is the entry of each row's first split in `means` and `variances`, [SAMPLES, COLUMNS],
    and `step` the distance of the others. A split has `size` of the `total` positions, the last
    one what is left. 0 where there are no splits.
    """
    entry, exists = tl.expand_dims(first, 1), tl.expand_dims(exists, 1)
    origin = tl.load(means + entry, exists & (_part(0, 1) < splits), other=0.0)
    shift = tl.zeros_like(origin)
    for start in range(0, splits, PARTS):
        part, share, inside = _parts(start, splits, size, total, exists, PARTS)
        gap = tl.load(means + entry + part * step, inside, other=0.0) - origin
        shift += tl.sum(tl.where(inside, share * gap, 0.0), 1, keep_dims=True)
    spread = tl.zeros_like(origin)
    for start in range(0, splits, PARTS):
        part, share, inside = _parts(start, splits, size, total, exists, PARTS)
        gap = tl.load(means + entry + part * step, inside, other=0.0) - origin - shift
        within = tl.load(variances + entry + part * step, inside, other=0.0)
        spread += tl.sum(tl.where(inside, share * (within + gap * gap), 0.0), 1, keep_dims=True)
    return tl.sum(origin + shift, 1), tl.sum(spread, 1)


@triton.jit
def add_splits(values, first, step, splits, exists, PARTS: tl.constexpr):
    """Return the sums of rows, [SAMPLES, COLUMNS], from those of their splits.

    See `merge_splits` for the arguments.
    """
    entry, exists = tl.expand_dims(first, 1), tl.expand_dims(exists, 1)
    sums = tl.zeros(entry.shape, tl.float32)
    for start in range(0, splits, PARTS):
        part = _part(start, PARTS)
        numbers = tl.load(values + entry + part * step, exists & (part < splits), other=0.0)
        sums += tl.sum(numbers, 1, keep_dims=True)
    return tl.sum(sums, 1)


@triton.jit
def absorb(mean, spread, count, means, variances, inside, number):
    """Return the pooled mean, the pooled variance and the number of samples, with more of them.

    `mean` and `spread` are [1, COLUMNS], of `count` samples before; `means` and `variances` are
    [SAMPLES, COLUMNS], of which the `number` rows that are `inside` count.
    """
    shift = tl.sum(tl.where(inside, means, 0.0), 0, keep_dims=True) / number
    gap = means - shift
    own = tl.sum(tl.where(inside, variances + gap * gap, 0.0), 0, keep_dims=True) / number
    share = number / (count + number)
    away = shift - mean
    spread = (1 - share) * spread + share * (own + (1 - share) * away * away)
    return mean + share * away, spread, count + number


@triton.jit
def _part(start, PARTS: tl.constexpr):
    return start + tl.arange(0, PARTS).to(tl.int64)[None, :, None]


@triton.jit
def _parts(start, splits, size, total, exists, PARTS: tl.constexpr):
    """Return PARTS splits, [1, PARTS, 1], their shares of the whole, and which of them exist."""
    part = _part(start, PARTS)
    share = tl.minimum(total - part * size, size).to(tl.float32) / total
    return part, share, exists & (part < splits)
