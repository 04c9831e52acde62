"""Merge the moments of parts of different sizes, on any device."""

from torch import Tensor


def merge_moments(means: Tensor, variances: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and variance of a whole from those of its parts: the law of total variance.

    The pieces of an image and the ranks of a process group are merged by this one function. The
    pooling of a scope stands in each backend: in `plain` because `torch.jit.script` compiles it, in
    `aten` because parts of equal size need fewer calls, in `triton` because it is a kernel.

    Args:
        means: (parts, C).
        variances: (parts, C); each divides by the size of its part.
        shares: (parts, 1), each part's share of the whole.

    Returns:
        Mean and variance, (C,) each.
    """
    # As distances from the first mean: then shares that do not add up to exactly 1 lose no digits
    # of a large common offset.
    origin = means[0].detach()
    mean = origin + (shares * (means - origin)).sum(0)
    return mean, (shares * ((means - mean).square() + variances)).sum(0)
