"""Describe how many layers of which class there are."""

from collections import Counter
from collections.abc import Iterable

from torch import nn


def class_name(layer: nn.Module) -> str:
    """Return the class of a layer with its module, such as `torch.nn.modules.linear.Linear`."""
    return f'{type(layer).__module__}.{type(layer).__qualname__}'


def tally(names: Iterable[str]) -> str:
    """Return how often each name occurs, the most frequent first, such as `'3 a, 1 b'`."""
    return ', '.join(f'{count} {name}' for name, count in Counter(names).most_common())
