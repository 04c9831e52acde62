"""Looking into folders with few requests, since data often lie on network disks."""

import os
from collections.abc import Iterable
from functools import cache


def has_file(folder: str) -> bool:
    """Return whether a file lies in the folder or anywhere below it."""
    return any(files for _, _, files in os.walk(folder, followlinks=True))


def missing_files(files: Iterable[str]) -> list[str]:
    """Return the files that do not exist."""
    listed = cache(names_in)
    # Some file systems know a file by other spellings of its name, too.
    return [
        file
        for file in files
        if os.path.basename(file) not in listed(os.path.dirname(file)) and not os.path.exists(file)
    ]


def names_in(folder: str) -> frozenset[str]:
    """Return the names in a folder, none if it cannot be read."""
    try:
        return frozenset(os.listdir(folder or os.curdir))
    except OSError:
        return frozenset()
