"""Markdown tables of grouped measurements, in plain Python: a bare machine can print them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

Item = TypeVar('Item')
Column = Callable[[list[Item]], str]


def group_by(items: Iterable[Item], key: Callable[[Item], Any]) -> dict[Any, list[Item]]:
    """Return the items by key, in the order of the first item of each group."""
    groups: dict[Any, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def table(
    items: Iterable[Item],
    titles: Sequence[str],
    key: Callable[[Item], tuple[str, ...]],
    columns: Mapping[str, Column],
) -> str:
    """Return a Markdown table with a row per group of items.

    Args:
        items: the measurements.
        titles: of the first columns, which show the key.
        key: from an item to the cells that name its group.
        columns: by title, from the items of a group to a cell.
    """
    rows = [
        [*cells, *(column(group) for column in columns.values())]
        for cells, group in group_by(items, key).items()
    ]
    header = [*titles, *columns]
    lines = [header, ['---'] * len(header), *rows]
    return '\n'.join(f'| {" | ".join(line)} |' for line in lines)
