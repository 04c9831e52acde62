"""Names of weights as messages show them."""

from collections.abc import Iterable

_LONGEST = 80


def shown(name: str) -> str:
    """Return ``name`` without what a file could do to a terminal by it."""
    name = name if name.isprintable() else ascii(name)[1:-1]
    return name if len(name) <= _LONGEST else f'{name[:_LONGEST]}…'


def few(names: Iterable[str], most: int = 3) -> str:
    """Return the first names, and how many more there are."""
    names = list(names)
    first = ', '.join(map(shown, names[:most]))
    return f'{first} and {len(names) - most} more' if len(names) > most else first
