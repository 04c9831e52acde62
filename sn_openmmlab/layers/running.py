"""The running statistics."""

from torch import Tensor


def move(running: Tensor, new: Tensor, share: float) -> None:
    """Let ``running`` take its share of the new value, in place.

    Args:
        running: (C,), in any type of floating point.
        new: (C,).
        share: that of the new value, in [0, 1]; a number, or a scalar tensor of the same type.
    """
    # In this form, unlike lerp's, a float16 variance that overflows stays inf, not NaN.
    running.mul_(1 - share).add_(new.to(running.dtype) * share)
