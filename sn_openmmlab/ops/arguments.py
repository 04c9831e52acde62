"""Checks of what the op is given; each failure says what was wrong and what to do."""

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

from sn_openmmlab.kernels.plain.scopes import SCOPES


def check_arguments(
    x: Tensor, affine: Sequence[Tensor | None], controls: Sequence[Tensor], scopes: Sequence[str]
) -> None:
    """Raise ValueError where shapes, types or scopes of the op's arguments do not fit.

    Args:
        x: see :func:`~sn_openmmlab.ops.switch_norm.switch_norm`; so are the others.
        affine: γ and β.
        controls: λ and λ′.
        scopes: the names of the scopes.
    """
    if x.dim() < 2 or not x.is_floating_point():
        raise ValueError(
            'switch_norm takes floating-point inputs of shape (N, C, *), not '
            f'{x.dtype} of shape {tuple(x.shape)}.'
        )
    if isinstance(scopes, str) or len(scopes) == 0 or not set(scopes) <= set(SCOPES):
        known = ', '.join(map(repr, SCOPES))
        raise ValueError(f'scopes must be a tuple of names out of {known}, not {scopes!r}.')
    for name, control in zip(('mean_weight', 'var_weight'), controls, strict=True):
        if known_shape(control) != (len(scopes),):
            raise ValueError(
                f'{name} must have a number for each of the {len(scopes)} scopes, but its shape '
                f'is {tuple(control.shape)}.'
            )
    channels = known_shape(x)[1:2]
    for name, parameter in zip(('weight', 'bias'), affine, strict=True):
        if parameter is not None and known_shape(parameter) != channels:
            raise ValueError(
                f'{name} must have a number for each of the {x.shape[1]} channels of the input, '
                f'but its shape is {tuple(parameter.shape)}.'
            )


def known_shape(x: Tensor) -> tuple[int, ...]:
    """Return the shape in numbers, also while ``torch.jit.trace`` records, and without its warning.

    For checks alone: a recording takes what it gives for constants.
    """
    if not torch.jit.is_tracing():
        return x.shape
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', torch.jit.TracerWarning)
        return tuple(map(int, x.shape))
