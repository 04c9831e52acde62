"""Names of weights and files as messages show them."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from sn_openmmlab.errors import UsageError

_LONGEST = 80


def shown(name: str) -> str:
    """Return `name` without characters by which a file could control a terminal."""
    name = name if name.isprintable() else ascii(name)[1:-1]
    return name if len(name) <= _LONGEST else f'{name[:_LONGEST]}…'


def few(names: Iterable[str], most: int = 3) -> str:
    """Return the first names, and how many more there are."""
    names = list(names)
    first = ', '.join(map(shown, names[:most]))
    return f'{first} and {len(names) - most} more' if len(names) > most else first


def few_misfits(misfits: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]]) -> str:
    """Return both shapes of the first weight, and the names of a few others.

    Args:
        misfits: Name → shape that was found, shape that is needed.
    """
    (name, (found, expected)), *others = misfits.items()
    rest = f', and of {few(name for name, _ in others)}' if others else ''
    return f'the shape {tuple(found)}, not {tuple(expected)}, of {shown(name)}{rest}'


@contextmanager
def about(path: str | os.PathLike) -> Iterator[None]:
    """Put the name of the file before the message of a UsageError."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f'{path}: {error}') from error
