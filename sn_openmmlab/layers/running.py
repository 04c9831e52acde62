"""Update the running statistics."""

from torch import Tensor


def move(running: Tensor, new: Tensor, share: float) -> None:
    """Move `running` towards `new` by a share, in place.

    Args:
        running: (C,), of any floating-point type.
        new: (C,).
        share: the share of the new value, in [0, 1]: a number, or a scalar tensor of that type.
    """
    # Unlike lerp, this keeps a float16 variance that overflows at inf instead of NaN.
    running.mul_(1 - share).add_(new.to(running.dtype) * share)
