"""The first stage of the authors' detectors, whose SN layers never leave training mode.

Their code means to freeze that stage, but its SN layers take the statistics of the image at hand
for `bn`, at test time too. They test one image at a time, and then `bn` is `in`.
"""

import torch
from torch import Tensor

from sn_openmmlab.layers.choice import CONTROLS

# After softmax nothing is left of a λ that is this much below the largest.
_BELOW = 100


def is_folded(name: str) -> bool:
    """Return whether a weight of MMDetection's model is a λ of the first stage."""
    return name.startswith('backbone.layer1.') and name.endswith(CONTROLS)


def fold_batch_norm(control: Tensor) -> Tensor:
    """Return λ of `in`, `ln`, `bn` that gives the share of `bn` to `in`.

    With one image, and in evaluation mode, a layer with it computes what one with the old λ does in
    training mode. The share of `ln` stays as it was.

    Args:
        control: λ in this order, (3,).
    """
    instance, layer, batch = control
    instance = torch.logaddexp(instance, batch)
    return torch.stack([instance, layer, torch.maximum(instance, layer) - _BELOW])
