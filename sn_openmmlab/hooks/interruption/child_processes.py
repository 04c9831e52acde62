"""Keep the signals of a process group from the processes that a training forks."""

import os
from functools import cache
from weakref import WeakSet

_OWNERS: WeakSet = WeakSet()


def spare_children(owner: object) -> None:
    """Give each process that this one forks a process group of its own, while ``owner`` lives.

    Ctrl-C and cluster managers signal a whole group. Data workers would end, and torch raises an
    error in the middle of a step when they do.
    """
    _OWNERS.add(owner)
    _register()


@cache
def _register() -> None:
    if hasattr(os, 'register_at_fork'):  # Not on Windows, where nothing forks.
        os.register_at_fork(after_in_child=_leave_group)


def _leave_group() -> None:
    if _OWNERS:
        os.setpgrp()
