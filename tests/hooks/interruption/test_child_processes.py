"""Forked processes leave the process group only while somebody wants it."""

import gc
import multiprocessing
import os

import pytest

from sn_openmmlab.hooks.interruption.child_processes import spare_children

pytestmark = pytest.mark.skipif(not hasattr(os, 'register_at_fork'), reason='nothing forks here')


class Owner:
    """Somebody who wants it."""


def _group_of_child() -> int:
    with multiprocessing.get_context('fork').Pool(1) as pool:
        return pool.apply(os.getpgrp)


def test_children_have_groups_of_their_own() -> None:
    owner = Owner()
    spare_children(owner)
    assert _group_of_child() != os.getpgrp()
    del owner
    # Of other tests, hooks in cycles.
    gc.collect()
    assert _group_of_child() == os.getpgrp()
