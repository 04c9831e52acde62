"""Whether a network can compute with the weights of a file."""

from collections.abc import Mapping

import torch
from torch import Tensor

from sn_openmmlab.checkpoints.names import few
from sn_openmmlab.errors import UsageError


def check_usable(weights: Mapping[str, Tensor]) -> None:
    """Raise UsageError, which names the weights, if a network could not compute with them.

    Each weight must be dense, finite and floating-point (or a counter). No variance may be
    negative.
    """
    odd = [name for name, weight in weights.items() if not _is_dense(weight)]
    if odd:
        raise UsageError(
            f'these weights are not dense floating-point tensors: {few(odd)}. Save them as such.'
        )
    broken = [name for name, weight in weights.items() if not _is_sound(name, weight)]
    if broken:
        raise UsageError(
            f'these weights hold NaN, infinity or a negative variance: {few(broken)}. Use a '
            'checkpoint from before the training diverged.'
        )


def _is_dense(weight: Tensor) -> bool:
    if weight.layout != torch.strided or weight.is_meta or weight.is_quantized:
        return False
    # A small file can hold a huge tensor that repeats one number.
    whole = weight.untyped_storage().nbytes() >= weight.numel() * weight.element_size()
    return whole and (weight.is_floating_point() or weight.dim() == 0)


def _is_sound(name: str, weight: Tensor) -> bool:
    # In float64, since some types lack these functions.
    values = weight.double()
    is_variance = name.endswith('running_var')
    return bool(values.isfinite().all()) and not (is_variance and bool((values < 0).any()))
