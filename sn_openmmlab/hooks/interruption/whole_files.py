"""Files of mmengine that are written whole or not at all, and removed when they are replaced."""

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from mmengine.fileio import LocalBackend

from sn_openmmlab.checkpoints.files.writing import replace_file


class WholeFiles(LocalBackend):
    """mmengine's backend of local files, which writes a file whole or leaves it as it was."""

    def put(self, obj: bytes, filepath: str | Path) -> None:
        """Write bytes to a file.

        Raises:
            OSError: The file cannot be written; its name is in the error.
        """
        if os.path.exists(filepath) and not os.path.isfile(filepath):
            super().put(obj, filepath)  # A device, or an error.
        else:
            replace_file(obj, filepath)


class LateRemoval:
    """A file backend that removes files when it is told to, not when it is asked to.

    Args:
        backend: that does all the rest.
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._waiting: dict[str, Callable[[str], None]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def remove(self, filepath: str) -> None:
        """Keep a file in mind."""
        self._waiting[str(filepath)] = self._backend.remove

    def rmtree(self, dir_path: str) -> None:
        """Keep a folder in mind."""
        self._waiting[str(dir_path)] = self._backend.rmtree

    def remove_now(self, keep: Collection[str | None] = ()) -> None:
        """Remove what was kept in mind.

        Args:
            keep: paths that were written anew since.
        """
        for path, remove in self._waiting.items():
            if path not in keep:
                remove(path)
        self._waiting.clear()
