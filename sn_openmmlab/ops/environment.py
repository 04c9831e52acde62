"""The backends by name, and what the environment variables of the user say of them.

Each variable is read once, at its first use.
"""

import os
from functools import cache
from typing import NamedTuple

from sn_openmmlab.errors import UsageError

# The fastest first.
FUSED = ('triton', 'cpp', 'aten')
BACKENDS = ('plain', *reversed(FUSED))

BACKEND = 'SN_OPENMMLAB_BACKEND'
GPU_CHECK = 'SN_OPENMMLAB_GPU_CHECK'


class Choice(NamedTuple):
    """Which backends may run.

    Attributes:
        forced: the only backend that may run, or None.
        fused: the fused backends that may run, the fastest first.
    """

    forced: str | None
    fused: tuple[str, ...]


@cache
def backend_choice() -> Choice:
    """Return what `SN_OPENMMLAB_BACKEND` says: all may run unless it is set.

    Raises:
        UsageError: if it is neither the name of a backend nor names with a minus before each.
    """
    value = os.environ.get(BACKEND, '').strip()
    names = [name.strip() for name in value.split(',')] if value else []
    if len(names) == 1 and names[0] in BACKENDS:
        return Choice(names[0], tuple(name for name in FUSED if name == names[0]))
    left_out = [name.removeprefix('-') for name in names if name.startswith('-')]
    if len(left_out) < len(names) or not set(left_out) <= set(FUSED):
        raise UsageError(
            f'{BACKEND} is {value!r}, but must be the name of the only backend to use, one of '
            f'{", ".join(BACKENDS)}, or the names of those to leave out, of '
            f'{", ".join(reversed(FUSED))}, with a minus before each, as in -triton,-cpp.'
        )
    return Choice(None, tuple(name for name in FUSED if name not in left_out))


@cache
def checks_gpu() -> bool:
    """Return whether the Triton kernels are checked before they are used; see `self_check`.

    Raises:
        UsageError: if `SN_OPENMMLAB_GPU_CHECK` is neither 0 nor 1.
    """
    value = os.environ.get(GPU_CHECK, '').strip() or '1'
    if value not in ('0', '1'):
        raise UsageError(
            f'{GPU_CHECK} is {value!r}, but must be 1, to check the Triton kernels on each GPU '
            'before they are used there, or 0 to trust them.'
        )
    return value == '1'


def check_environment() -> None:
    """Raise a UsageError if one of the variables has a value that means nothing."""
    backend_choice()
    checks_gpu()
