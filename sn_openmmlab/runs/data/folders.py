"""What lies in folders, by few requests: data sets often lie on network disks."""

import os
from collections.abc import Iterable


def has_file(folder: str) -> bool:
    """Whether a file lies in the folder or anywhere below it."""
    below = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir():
                return True
            below.append(entry.path)
    return any(has_file(path) for path in below)


def missing_files(files: Iterable[str]) -> list[str]:
    """Return those of the files that do not exist."""
    names: dict[str, set[str]] = {}
    missing = []
    for file in files:
        folder, name = os.path.split(file)
        if folder not in names:
            names[folder] = _names(folder)
        # Some file systems know a file by other spellings of its name, too.
        if name not in names[folder] and not os.path.exists(file):
            missing.append(file)
    return missing


def _names(folder: str) -> set[str]:
    try:
        return set(os.listdir(folder or os.curdir))
    except OSError:
        return set()
