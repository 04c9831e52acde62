"""A mistake: what is changed in a good config and its data, and how the tool is called."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Config = dict[str, Any]


@dataclass
class Scene:
    """A good config and a copy of its data, to be spoiled.

    Attributes:
        folder: where the tool is started; the data are in ``data`` there.
        config: the settings, which are written to a file once they are spoiled.
        arguments: of the command line, behind the config.
    """

    folder: Path
    config: Config
    arguments: list[str] = field(default_factory=list)

    @property
    def data(self) -> Path:
        return self.folder / 'data'

    def set(self, key: str, value: Any) -> None:
        """Set a dotted key of the config; numbers choose an item of a list."""
        part, last = self._parent(key)
        part[last] = value

    def remove(self, key: str) -> None:
        """Remove a dotted key of the config."""
        part, last = self._parent(key)
        del part[last]

    def get(self, key: str) -> Any:
        """Return the value of a dotted key of the config."""
        part, last = self._parent(key)
        return part[last]

    def _parent(self, key: str) -> tuple[Any, Any]:
        *path, last = (int(name) if name.lstrip('-').isdigit() else name for name in key.split('.'))
        part: Any = self.config
        for name in path:
            part = part[name]
        return part, last


@dataclass(frozen=True)
class Case:
    """A mistake.

    Attributes:
        task: ``'box'``, ``'mask'``, ``'map'`` or ``'class'``: a detector with or without masks, a
            segmenter, a classifier.
        change: what is changed, in words.
        spoil: makes the change.
        tool: the tool that meets it.
    """

    task: str
    change: str
    spoil: Callable[[Scene], None]
    tool: str = 'train.py'

    @property
    def name(self) -> str:
        return f'{self.task}, {self.tool.removesuffix(".py")}: {self.change}'


def with_values(values: Mapping[str, Any]) -> Callable[[Scene], None]:
    """Return the change that sets dotted keys of the config."""

    def spoil(scene: Scene) -> None:
        for key, value in values.items():
            scene.set(key, value)

    return spoil
