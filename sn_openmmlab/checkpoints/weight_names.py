"""The names of weights: a layer and its part, and the `module.` of parallel training."""

import re
from collections.abc import Iterable

from sn_openmmlab.checkpoints.names import shown
from sn_openmmlab.errors import UsageError


def joined(layer: str, part: str) -> str:
    """Return the name of a weight; a layer that is the whole model has the name `''`."""
    return f'{layer}.{part}' if layer else part


def bare(name: str) -> str:
    """Return `name` without the `module.` that parallel training puts before it."""
    return re.sub(r'^(module\.)+', '', name)


def bare_names(names: Iterable[str]) -> dict[str, str]:
    """Return bare name → name.

    Raises:
        UsageError: Two names differ only in their `module.`.
    """
    found: dict[str, str] = {}
    for name in names:
        other = found.setdefault(bare(name), name)
        if other != name:
            raise UsageError(
                f'it has both {shown(other)} and {shown(name)}, which are the same weight: save '
                'only one of them.'
            )
    return found
