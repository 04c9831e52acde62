"""Importance ratios in a kernel.

A scope's number is its place among the control parameters, or -1 where it is not mixed. Triton has
no arrays, so values for several scopes are a vector of `MOST_SCOPES` numbers.
"""

import triton
import triton.language as tl

from sn_openmmlab.kernels.triton import FUSED_SCOPES

MOST_SCOPES = tl.constexpr(triton.next_power_of_2(len(FUSED_SCOPES)))


@triton.jit
def importance_ratios(control, SCOPES: tl.constexpr):
    """Return the softmax of λ or λ′ (Eq. 5), with 0 in the places behind the last scope.

    `control` is (SCOPES,); the result is [MOST_SCOPES].
    """
    place = tl.arange(0, MOST_SCOPES)
    values = tl.load(control + place, place < SCOPES, other=-float('inf')).to(tl.float32)
    powers = tl.exp(values - tl.max(values, 0))
    return powers / tl.sum(powers, 0)


@triton.jit
def ratios_at(control, channel, share, SCOPES: tl.constexpr):
    """Return the importance ratios of the group of channels that `channel` belongs to.

    `control` is (G, SCOPES), for groups of `share` channels each; the result is [MOST_SCOPES].
    """
    return importance_ratios(control + channel // share * SCOPES, SCOPES)


@triton.jit
def pick(ratios, SCOPE: tl.constexpr):
    """Return the ratio of one scope, out of [MOST_SCOPES]."""
    return tl.sum(tl.where(tl.arange(0, MOST_SCOPES) == SCOPE, ratios, 0.0), 0)


@triton.jit
def put(value, SCOPE: tl.constexpr):
    """Return [MOST_SCOPES] with `value` in the place of one scope and 0 elsewhere."""
    return tl.where(tl.arange(0, MOST_SCOPES) == SCOPE, value, 0.0)
