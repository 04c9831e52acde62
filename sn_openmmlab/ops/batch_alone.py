"""The case that is BatchNorm in evaluation: given moments of `'bn'`, and no other scope."""

import torch
from torch import Tensor
from torch.nn.functional import batch_norm

from sn_openmmlab.kernels.contract import Mixture, Moments
from sn_openmmlab.kernels.plain.moments import statistics_dtype
from sn_openmmlab.ops.autocast import without_autocast

# In units of the standard deviation: a smaller offset costs no significant digits.
SMALL_OFFSET = 16


def is_batch_alone(mixture: Mixture, given: Moments | None, controls: Moments) -> bool:
    """Return whether torch's BatchNorm computes the op, with all gradients that are asked for."""
    if given is None or mixture.scopes != ('bn',):
        return False
    return not (torch.is_grad_enabled() and any(control.requires_grad for control in controls))


def batch_alone(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, given: Moments, eps: float
) -> Tensor | None:
    """Return `x` normalized by given moments; None if that would lose digits or the layout of `x`.

    Args:
        x: (N, C, *).
        weight: γ, (C,), or None.
        bias: β, (C,), or None.
        given: mean and variance, (C,) each.
        eps: ε.
    """
    if not (x.is_contiguous() or _is_channels_last(x)):
        return None
    dtype = statistics_dtype(x.dtype)
    mean, var, weight, bias = (
        None if table is None else table.to(dtype) for table in (*given, weight, bias)
    )
    # torch's CPU kernel adds the offset of the mean to β, which costs a large one digits. Elsewhere
    # the kernels subtract the mean first, and the check would wait for the device.
    if x.is_cpu and (mean * (var + eps).rsqrt()).abs().amax() > SMALL_OFFSET:
        return None
    with without_autocast(x.device):
        return batch_norm(x, mean, var, weight, bias, False, 0.0, eps)


def _is_channels_last(x: Tensor) -> bool:
    return x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)
