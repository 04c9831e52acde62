"""What mmengine keeps for the whole process: loggers, message hubs, visualizers and scopes.

A run takes over one of the same name, with the folder of the run before.
"""

import sys
from collections.abc import Iterator, Mapping


def kept() -> dict[type, dict[str, object]]:
    """Return the instances of each class by name."""
    return {manager: manager._instance_dict.copy() for manager in _managers()}


def forget() -> None:
    """Leave no instance."""
    restore({})


def restore(before: Mapping[type, dict[str, object]]) -> None:
    """Leave the instances that `kept` returned."""
    for manager in _managers():
        manager._instance_dict.clear()
        manager._instance_dict.update(before.get(manager, {}))


def _managers() -> Iterator[type]:
    """Yield the classes whose instances are global, none while mmengine is not imported."""
    utils = sys.modules.get('mmengine.utils')
    if utils:
        yield from _subclasses(utils.ManagerMixin)


def _subclasses(cls: type) -> Iterator[type]:
    for child in cls.__subclasses__():
        yield child
        yield from _subclasses(child)
