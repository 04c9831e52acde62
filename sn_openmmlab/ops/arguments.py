"""Check the arguments of the op; the layers share these checks. Each message says what to do."""

import warnings
from collections.abc import Sequence
from numbers import Integral

import torch
from torch import Tensor

from sn_openmmlab.errors import InputError
from sn_openmmlab.scopes import SCOPES


def check_arguments(
    x: Tensor,
    affine: Sequence[Tensor | None],
    controls: Sequence[Tensor],
    scopes: Sequence[str],
    num_groups: int,
) -> None:
    """Raise where shapes, types, scopes or groups of the op's arguments do not fit.

    Args:
        x: the input; see `switch_norm`, as for the others.
        affine: γ and β.
        controls: λ and λ′.
        scopes: the names of the scopes.
        num_groups: the number of groups of `'gn'`.

    Raises:
        TypeError: if `scopes` or `num_groups` is of the wrong type.
        InputError: if `x` is not a floating-point tensor of 2 to 5 dimensions.
        ValueError: if anything else does not fit.
    """
    check_input(x)
    check_scopes(scopes)
    if 'gn' in scopes:
        check_groups(num_groups, known_shape(x)[1], scopes)
    for name, control in zip(('mean_weight', 'var_weight'), controls, strict=True):
        shape = known_shape(control)
        if len(shape) == 2 and shape[0] > 0:
            check_ratio_groups(shape[0], known_shape(x)[1])
            shape = shape[1:]
        if shape != (len(scopes),):
            raise ValueError(
                f'{name} must have one number for each of the {len(scopes)} scopes, but its shape '
                f'is {tuple(control.shape)}.'
            )
    channels = known_shape(x)[1:2]
    for name, parameter in zip(('weight', 'bias'), affine, strict=True):
        if parameter is not None and known_shape(parameter) != channels:
            raise ValueError(
                f'{name} must have one number for each of the {x.shape[1]} channels of the input, '
                f'but its shape is {tuple(parameter.shape)}.'
            )


def check_input(x: Tensor, name: str = 'SwitchNorm') -> None:
    """Raise InputError unless `x` is (N, C), (N, C, L), (N, C, H, W) or (N, C, D, H, W).

    Args:
        x: the input.
        name: what the message calls the layer.
    """
    if not 2 <= x.dim() <= 5:
        raise InputError(
            f'{name} takes inputs of 2 to 5 dimensions, (N, C) to (N, C, D, H, W), but got '
            f'{x.dim()}: shape {tuple(x.shape)}.'
        )
    if not x.is_floating_point():
        raise InputError(f'{name} takes floating-point inputs, not {x.dtype}.')


def check_scopes(scopes: Sequence[str]) -> tuple[str, ...]:
    """Return `scopes` as a tuple.

    Raises:
        TypeError: if `scopes` is not a sequence of names.
        ValueError: if it is empty, or has an unknown scope, or one twice.
    """
    if isinstance(scopes, str) or not isinstance(scopes, Sequence):
        raise TypeError(f"scopes must be a tuple of names such as ('in', 'ln'), not {scopes!r}.")
    if len(scopes) == 0:
        raise ValueError(f'scopes is empty: name at least one of {_known()}.')
    names = tuple(SCOPES)
    for scope in scopes:
        if scope not in names:
            raise ValueError(f'unknown scope {scope!r}: scopes may name {_known()}.')
    if len(set(scopes)) < len(scopes):
        raise ValueError(f'scopes {tuple(scopes)} names a scope twice: name each at most once.')
    return tuple(scopes)


def check_groups(num_groups: int, num_features: int, scopes: Sequence[str]) -> None:
    """Raise unless `num_groups` is a positive integer that fits the channels.

    Raises:
        TypeError: if it is not an integer.
        ValueError: if it is below one, or if `'gn'` is among `scopes` and it does not divide
            `num_features`.
    """
    check_count('num_groups', num_groups)
    if 'gn' in scopes and num_features % num_groups:
        raise ValueError(
            f"scope 'gn' cannot split {num_features} channels into {num_groups} equal groups: "
            'set num_groups to a divisor of the number of channels.'
        )


def check_ratio_groups(num_ratio_groups: int, num_features: int) -> None:
    """Raise unless `num_ratio_groups` is a positive integer that divides the channels.

    Raises:
        TypeError: if it is not an integer.
        ValueError: if it is below one or does not divide `num_features`.
    """
    check_count('num_ratio_groups', num_ratio_groups)
    if num_features % num_ratio_groups:
        raise ValueError(
            f'{num_features} channels do not split into {num_ratio_groups} equal groups with '
            'ratios of their own: set num_ratio_groups to a divisor of the number of channels.'
        )


def check_count(name: str, value: int) -> None:
    """Raise TypeError or ValueError unless the argument `name` is a positive integer."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f'{name} must be a whole number, not {value!r}.')
    if value < 1:
        raise ValueError(f'{name} is {value}, but must be at least 1.')


def known_shape(x: Tensor) -> tuple[int, ...]:
    """Return the shape as numbers, also while `torch.jit.trace` records, without its warning.

    Use it for checks alone: a recording takes these numbers for constants.
    """
    if not torch.jit.is_tracing():
        return x.shape
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', torch.jit.TracerWarning)
        return tuple(map(int, x.shape))


def _known() -> str:
    return ', '.join(map(repr, SCOPES))
