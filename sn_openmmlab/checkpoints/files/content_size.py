"""How much memory copies of a checkpoint's content would take."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from mmengine.logging import HistoryBuffer
from torch import Tensor

# MMEngine's own have fewer than ten levels.
_DEEPEST = 64
_ITEM, _UNDER_WAY = 16, -1


def content_size(content: Any) -> int:
    """Return the bytes of all values in a checkpoint, each as often as it is used.

    A tensor counts with its shape, which can be far larger than its memory. Containers, numbers and
    the like count as 16 bytes each: in a file they take one at least.

    Raises:
        ValueError: a part contains itself, or lies deeper than any that MMEngine writes.
    """
    return _size(content, {}, 0)


def _size(value: Any, known: dict[int, int], depth: int) -> int:
    if isinstance(value, Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, str | bytes | bytearray):
        return len(value)
    parts = _parts(value)
    if parts is None:
        return _ITEM
    if depth > _DEEPEST:
        raise ValueError('it is too deep')
    if id(value) not in known:
        known[id(value)] = _UNDER_WAY
        known[id(value)] = _ITEM + sum(_size(part, known, depth + 1) for part in parts)
    if known[id(value)] == _UNDER_WAY:
        raise ValueError('a part contains itself')
    return known[id(value)]


def _parts(value: Any) -> Iterable[Any] | None:
    """Return what a value holds, or None if it is a plain one."""
    if isinstance(value, Mapping):
        return (part for item in (*value.items(), *_attributes(value)) for part in item)
    if isinstance(value, list | tuple | set):
        return value
    if isinstance(value, HistoryBuffer):
        return (part for item in _attributes(value) for part in item)
    return None


def _attributes(value: Any) -> Iterable[tuple[str, Any]]:
    return getattr(value, '__dict__', {}).items()
