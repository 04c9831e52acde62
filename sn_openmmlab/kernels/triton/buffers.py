"""The two buffers of tables: one of the forward pass, which backward needs, one of backward alone.

Both are in float32, and hold one table after another. Kernels find them by N and C.

    tables      (N, C)  centre   the mixed mean                 `mixed`
                (N, C)  rstd     1 / sqrt(mixed variance + ε)
                (N, C)  mean     of each channel of each sample `instances`
                (N, C)  var
                (C,)    mean     of `'bn'`                      `batch`
                (C,)    var
                the moments of the splits, where rows are split, unless they have a buffer of
                their own

    work        (N, C)  total    Σ dy                           `sums`
                (N, C)  dot      Σ dy·(x - centre)
                (N, C)  slope    what the statistics add to dx: `(x - centre) * slope + offset`
                (N, C)  offset
                (C,)    d_mean   gradients of both mixes, summed over the samples
                (C,)    d_var
                partial gradients of the ratios, one row of MOST_SCOPES per program, for the means
                and then for the variances
                the sums of the splits, where rows are split

The names on the right are those of `kernels/contract.py`.
"""

from collections.abc import Sequence

from torch import Tensor


def tables_size(entries: int, channels: int) -> int:
    """Return the number of numbers in `tables`; `entries` is N·C."""
    return 4 * entries + 2 * channels


def mixed_of(tables: Tensor, shape: Sequence[int]) -> Tensor:
    """Return `mixed`, (2, N, C), for a shape of (N, C, *)."""
    samples, channels = shape[:2]
    return tables[: 2 * samples * channels].view(2, samples, channels)


def instances_of(tables: Tensor, shape: Sequence[int]) -> Tensor:
    """Return `instances`, (2, N, C)."""
    samples, channels = shape[:2]
    entries = samples * channels
    return tables[2 * entries : 4 * entries].view(2, samples, channels)


def batch_of(tables: Tensor, shape: Sequence[int]) -> Tensor:
    """Return `batch`, (2, C)."""
    channels = shape[1]
    entries = shape[0] * channels
    return tables[4 * entries : 4 * entries + 2 * channels].view(2, channels)
