"""The moments of a batch by themselves, without a normalization."""

from torch import Tensor

from sn_openmmlab.kernels.contract import Mixture, Moments
from sn_openmmlab.kernels.plain import moments, scopes
from sn_openmmlab.ops.backends import choose_backend, fused_stages


def batch_moments(x: Tensor) -> Moments:
    """Return mean and biased variance of each channel over the batch, (C,) each.

    Args:
        x: (N, C, *) with at least one value per channel.

    Returns:
        Both in the statistics' type: float32 for a half-precision input, else the type of `x`.
    """
    dtype = moments.statistics_dtype(x.dtype)
    backend = choose_backend(x, ('bn',))
    if backend == 'plain':
        return scopes.batch_moments(*moments.instance_moments(x.to(dtype), correction=0))
    _, batch = fused_stages(backend).observe(x, Mixture(('bn',), 1, 0, 0.0), True)
    return tuple(batch.to(dtype).unbind())
