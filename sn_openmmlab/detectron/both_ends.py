"""Boxes that hold both of their ends, as edges."""

import torch
from torch import Tensor


def edges(boxes: Tensor) -> Tensor:
    """Return boxes (x1, y1, x2, y2) with the right and lower edge of their last pixel.

    Then `x2 - x1` is the width, as MMDetection takes it.

    Args:
        boxes: Shape (…, 4), or (…, 5) with the number of the image first.
    """
    return torch.cat([boxes[..., :-2], boxes[..., -2:] + 1], -1)
