"""Checks of what a layer is given; each failure says what was wrong and what to do."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from torch import Tensor

from sn_openmmlab.errors import InputError
from sn_openmmlab.kernels.plain.scopes import SCOPES
from sn_openmmlab.ops.arguments import known_shape


def check_scopes(scopes: Sequence[str]) -> tuple[str, ...]:
    """Return ``scopes`` as a tuple.

    Raises:
        TypeError: ``scopes`` is not a sequence of names.
        ValueError: it is empty, or names an unknown scope, or one twice.
    """
    if isinstance(scopes, str) or not isinstance(scopes, Sequence):
        raise TypeError(f"scopes must be a tuple of names such as ('in', 'ln'), not {scopes!r}.")
    known = ', '.join(repr(scope) for scope in SCOPES)
    if len(scopes) == 0:
        raise ValueError(f'scopes is empty: name at least one of {known}.')
    for scope in scopes:
        if scope not in SCOPES:
            raise ValueError(f'unknown scope {scope!r}: scopes may name {known}.')
    if len(set(scopes)) < len(scopes):
        raise ValueError(f'scopes {tuple(scopes)} names a scope twice: name each at most once.')
    return tuple(scopes)


def check_num_features(num_features: int) -> None:
    """Raise TypeError or ValueError unless ``num_features`` is a whole number above zero."""
    _check_count('num_features', num_features)


def check_groups(num_groups: int, num_features: int, scopes: Sequence[str]) -> None:
    """Raise unless ``num_groups`` is a whole number above zero that fits the channels.

    Raises:
        TypeError: it is not a whole number.
        ValueError: it is below one, or ``'gn'`` is among ``scopes`` and it does not divide
            ``num_features``.
    """
    _check_count('num_groups', num_groups)
    if 'gn' in scopes and num_features % num_groups:
        raise ValueError(
            f"scope 'gn' cannot split {num_features} channels into {num_groups} equal groups: "
            'set num_groups to a divisor of the number of channels.'
        )


def check_momentum(momentum: float | None) -> None:
    """Raise TypeError or ValueError unless ``momentum`` is None or in [0, 1]."""
    if momentum is None:
        return
    if not _is_number(momentum):
        raise TypeError(f'momentum must be a number or None, not {momentum!r}.')
    if not 0 <= momentum <= 1:
        raise ValueError(
            f'momentum is {momentum}, outside [0, 1]: it is the share of the new value in the '
            'running statistics (0.1 is usual; None averages all batches).'
        )


def check_eps(eps: float) -> None:
    """Raise TypeError or ValueError unless ``eps`` is a number that is not negative."""
    if not _is_number(eps):
        raise TypeError(f'eps must be a number, not {eps!r}.')
    if not 0 <= eps < float('inf'):
        raise ValueError(f'eps is {eps}: it is added to a variance and must be finite and ≥ 0.')


def check_batch_ratio(batch_ratio: float) -> None:
    """Raise TypeError or ValueError unless ``batch_ratio`` is a number in (0, 1]."""
    if not _is_number(batch_ratio):
        raise TypeError(f'batch_ratio must be a number, not {batch_ratio!r}.')
    if not 0 < batch_ratio <= 1:
        raise ValueError(
            f"batch_ratio is {batch_ratio}, outside (0, 1]: it is the share of 'bn' in the mix."
        )


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raise ValueError unless ``value`` is one of ``choices``."""
    if isinstance(value, bool) or value not in choices:
        allowed = ' or '.join(repr(choice) for choice in choices)
        raise ValueError(f'{name} must be {allowed}, not {value!r}.')


def check_flag(name: str, value: bool) -> None:
    """Raise TypeError unless ``value`` is True or False; ``'False'`` would count as True."""
    if value not in (True, False):
        raise TypeError(f'{name} must be True or False, not {value!r}.')


def check_input(x: Tensor, num_features: int) -> None:
    """Raise InputError unless ``x`` is (N, C), (N, C, L), (N, C, H, W) or (N, C, D, H, W)."""
    if not 2 <= x.dim() <= 5:
        raise InputError(
            f'SwitchNorm takes inputs of 2 to 5 dimensions, (N, C) to (N, C, D, H, W), but got '
            f'{x.dim()}: shape {tuple(x.shape)}.'
        )
    if known_shape(x)[1] != num_features:
        tokens = x.dim() == 3 and x.shape[2] == num_features
        hint = " Tokens of a transformer, (N, L, C), need type='LN' there." if tokens else ''
        raise InputError(
            f'SwitchNorm was made for {num_features} channels, but dimension 1 of the input has '
            f'{x.shape[1]}: shape {tuple(x.shape)}.{hint}'
        )
    if not x.is_floating_point():
        raise InputError(f'SwitchNorm takes floating-point inputs, not {x.dtype}.')


def _check_count(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f'{name} must be a whole number, not {value!r}.')
    if value < 1:
        raise ValueError(f'{name} is {value}, but must be at least 1.')


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
