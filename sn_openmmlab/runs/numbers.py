"""The check that the numbers of a config can be meant, before anything is built."""

import math
from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any

from mmengine.config import Config

from sn_openmmlab.config_tree import walk
from sn_openmmlab.errors import UsageError

# A model accepts each of these below 0, and then trains on NaN or away from its goal.
_POSITIVE = ('ratios', 'scales', 'strides', 'featmap_strides', 'target_stds', 'max_norm')
_POSITIVE_LISTS = ('std',)
_NOT_NEGATIVE = ('class_weight', 'loss_weight')
_FINITE = ('mean', 'target_means')


def check_numbers(config: Config) -> None:
    """Raise UsageError if a number of the config is NaN, or has a sign that cannot be meant."""
    for place, part in walk(dict(config.items())):
        for key, value in part.items():
            name = f'{place}.{key}' if place else str(key)
            for number in _numbers_in(value):
                if math.isnan(number):
                    raise UsageError(f'{name} of the config is NaN: write a number.')
                if fault := _fault(str(key), value, number):
                    raise UsageError(f'{name} of the config must be {fault}, not {value!r}.')


def _fault(key: str, value: Any, number: float) -> str:
    """Return what a number must be, or '' if it is."""
    positive = key in _POSITIVE or (key in _POSITIVE_LISTS and isinstance(value, list | tuple))
    # No limit is written as an infinite one.
    if positive and (number <= 0 or (math.isinf(number) and key != 'max_norm')):
        return 'positive'
    if key in _NOT_NEGATIVE and number < 0:
        return 'positive or 0'
    return 'finite' if key in _FINITE and math.isinf(number) else ''


def _numbers_in(value: Any) -> Iterator[float]:
    """Yield the numbers in nested lists, but not those in dicts, which `walk` yields."""
    if isinstance(value, Real) and not isinstance(value, bool):
        yield float(value)
    elif isinstance(value, list | tuple):
        for item in value:
            if not isinstance(item, Mapping):
                yield from _numbers_in(item)
