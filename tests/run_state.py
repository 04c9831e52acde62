"""Take back what a run of a toolbox leaves in its process, so that the next one begins anew."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from torch import distributed


@contextmanager
def taken_back() -> Iterator[None]:
    """Take back what the block leaves.

    That is what mmengine keeps by the name of a run (loggers with their files, message hubs,
    visualizers with their folders, default scopes), the group of processes, and the search path
    with the modules that it found.
    """
    before = {manager: manager._instance_dict.copy() for manager in _managers()}
    modules, path = set(sys.modules), sys.path.copy()
    grouped = distributed.is_initialized()
    yield
    for manager in _managers():
        manager._instance_dict.clear()
        manager._instance_dict.update(before.get(manager, {}))
    if distributed.is_initialized() and not grouped:
        distributed.destroy_process_group()
    folders = [folder for folder in sys.path if folder not in path]
    _forget_modules(set(sys.modules) - modules, folders)
    sys.path[:] = path


def forget() -> None:
    """Forget what mmengine keeps by the name of a run."""
    for manager in _managers():
        manager._instance_dict.clear()


def _forget_modules(names: Iterable[str], folders: list[str]) -> None:
    for name in names:
        file = getattr(sys.modules[name], '__file__', None)
        if file and any(Path(file).is_relative_to(folder) for folder in folders):
            del sys.modules[name]


def _managers() -> Iterator[type]:
    """Yield the classes whose instances are global, none while mmengine is not imported."""
    utils = sys.modules.get('mmengine.utils')
    if utils:
        yield from _subclasses(utils.ManagerMixin)


def _subclasses(cls: type) -> Iterator[type]:
    for child in cls.__subclasses__():
        yield child
        yield from _subclasses(child)
