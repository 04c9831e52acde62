"""Looking through the nested dicts and lists of a config."""

from collections.abc import Iterator, Mapping
from typing import Any


def walk(part: Any, place: str = '') -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each dict in a part of a config, the outer ones first.

    Args:
        part: a dict, a list or a value of the config.
        place: the dotted key of ``part``, such as ``'model'``.

    Yields:
        The dotted key of the dict, such as ``'model.bbox_head.0'``, and the dict.
    """
    items = enumerate(part) if isinstance(part, list | tuple) else ()
    if isinstance(part, Mapping):
        yield place, part
        items = part.items()
    for key, value in items:
        yield from walk(value, f'{place}.{key}' if place else str(key))


def imported_modules(config: Mapping[str, Any]) -> list[str]:
    """Return the modules that a config names in ``custom_imports``."""
    names = (config.get('custom_imports') or {}).get('imports', [])
    return [names] if isinstance(names, str) else list(names)
