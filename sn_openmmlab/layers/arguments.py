"""Check the arguments and inputs of a layer, beyond what the op checks.

See `ops/arguments.py` for the checks of scopes and groups. Each message says what to do.
"""

from collections.abc import Sequence
from numbers import Real
from typing import Any

from torch import Tensor

from sn_openmmlab.errors import InputError
from sn_openmmlab.ops.arguments import check_count, check_input, known_shape


def check_num_features(num_features: int) -> None:
    """Raise TypeError or ValueError unless `num_features` is a positive integer."""
    check_count('num_features', num_features)


def check_momentum(momentum: float | None) -> None:
    """Raise TypeError or ValueError unless `momentum` is None or in [0, 1]."""
    if momentum is None:
        return
    if not is_number(momentum):
        raise TypeError(f'momentum must be a number or None, not {momentum!r}.')
    if not 0 <= momentum <= 1:
        raise ValueError(
            f'momentum is {momentum}, outside [0, 1]: it is the share of the new value in the '
            'running statistics (0.1 is usual; None averages all batches).'
        )


def check_eps(eps: float) -> None:
    """Raise TypeError or ValueError unless `eps` is a finite number that is not negative."""
    if not is_number(eps):
        raise TypeError(f'eps must be a number, not {eps!r}.')
    if not 0 <= eps < float('inf'):
        raise ValueError(f'eps is {eps}: it is added to a variance and must be finite and ≥ 0.')


def check_batch_ratio(batch_ratio: float) -> None:
    """Raise TypeError or ValueError unless `batch_ratio` is a number in (0, 1]."""
    if not is_number(batch_ratio):
        raise TypeError(f'batch_ratio must be a number, not {batch_ratio!r}.')
    if not 0 < batch_ratio <= 1:
        raise ValueError(
            f"batch_ratio is {batch_ratio}, outside (0, 1]: it is the share of 'bn' in the mix."
        )


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raise ValueError unless `value` is one of `choices`; 1.0 is not 1, nor is True."""
    if isinstance(value, (bool, float)) or value not in choices:
        allowed = ' or '.join(repr(choice) for choice in choices)
        raise ValueError(f'{name} must be {allowed}, not {value!r}.')


def check_flag(name: str, value: bool) -> None:
    """Raise TypeError unless `value` is True or False; `'False'` would count as True."""
    if value not in (True, False):
        raise TypeError(f'{name} must be True or False, not {value!r}.')


def check_channels(x: Tensor, num_features: int, name: str = 'SwitchNorm') -> None:
    """Raise InputError unless `x` fits a layer of `num_features` channels; see `check_input`."""
    check_input(x, name)
    if known_shape(x)[1] != num_features:
        tokens = x.dim() == 3 and x.shape[2] == num_features
        hint = " Tokens of a transformer, (N, L, C), need type='LN' there." if tokens else ''
        raise InputError(
            f'{name} was made for {num_features} channels, but dimension 1 of the input has '
            f'{x.shape[1]}: shape {tuple(x.shape)}.{hint}'
        )


def is_number(value: Any) -> bool:
    """Return whether `value` is a real number; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)
