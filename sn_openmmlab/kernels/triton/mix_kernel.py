"""The kernel of `mix`."""

import triton
import triton.language as tl

from sn_openmmlab.kernels.triton.pooling import locate_channels, pool_moments
from sn_openmmlab.kernels.triton.ratios import pick, ratios_at


@triton.jit
def mix_kernel(
    mean,
    var,
    batch_mean,
    batch_var,
    mean_control,
    var_control,
    centre,
    rstd,
    channels,
    size,
    group,
    share,
    eps,
    IN: tl.constexpr,
    GN: tl.constexpr,
    LN: tl.constexpr,
    BN: tl.constexpr,
    SCOPES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Mix the moments of `size` channels of one sample, which are all in the same groups.

    `mean`, `var`, `centre` and `rstd` are (N, C); `batch_mean` and `batch_var` are (C,), or None
    without `'bn'`; the controls are (C / share, SCOPES). A group of `'gn'` has `group` channels.
    IN, GN, LN and BN are the places of the scopes among the controls, or -1.
    """
    first, row, column = locate_channels(channels, size)
    mean_ratios = ratios_at(mean_control, column, share, SCOPES)
    var_ratios = ratios_at(var_control, column, share, SCOPES)
    if GN >= 0:
        gn_mean, gn_var = pool_moments(mean, var, first - column % group, group, BLOCK)
    if LN >= 0:
        ln_mean, ln_var = pool_moments(mean, var, row, channels, BLOCK)
    for start in range(0, size, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < size
        own_mean = tl.load(mean + first + at, inside, other=0.0)
        own_var = tl.load(var + first + at, inside, other=0.0)
        away = tl.zeros_like(own_mean)
        mixed = pick(var_ratios, IN) * own_var
        if GN >= 0:
            away += pick(mean_ratios, GN) * (gn_mean - own_mean)
            mixed += pick(var_ratios, GN) * gn_var
        if LN >= 0:
            away += pick(mean_ratios, LN) * (ln_mean - own_mean)
            mixed += pick(var_ratios, LN) * ln_var
        if BN >= 0:
            bn_mean = tl.load(batch_mean + column + at, inside, other=0.0).to(tl.float32)
            bn_var = tl.load(batch_var + column + at, inside, other=0.0).to(tl.float32)
            away += pick(mean_ratios, BN) * (bn_mean - own_mean)
            mixed += pick(var_ratios, BN) * bn_var
        tl.store(centre + first + at, own_mean + away, inside)
        tl.store(rstd + first + at, tl.rsqrt(mixed + eps), inside)
