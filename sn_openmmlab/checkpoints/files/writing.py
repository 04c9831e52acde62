"""Writing checkpoint files: whole, or not at all."""

import io
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from sn_openmmlab.errors import UsageError


def check_output(path: str | os.PathLike, inputs: Iterable[str | os.PathLike]) -> None:
    """Raise UsageError where ``path`` could not be written without harm.

    That is where it is empty, a folder, a device or write-protected, or is one of the inputs.
    """
    _check_name(path)
    if not os.path.exists(path):
        return
    if any(os.path.exists(file) and os.path.samefile(path, file) for file in inputs):
        raise UsageError(f'{path} is read and would be overwritten: name another file to write.')
    if not os.path.isfile(path):
        raise UsageError(f'{path} is not a regular file: name another one to write.')
    if not os.access(path, os.W_OK):
        raise UsageError(f'{path} is there and write-protected: name another file to write.')


def write_checkpoint(checkpoint: Mapping[str, Any], path: str | os.PathLike) -> None:
    """Save a checkpoint; a file that is there is replaced at once, when the new one is complete.

    Missing folders are made; a replaced file keeps its permissions.

    Raises:
        UsageError: it cannot be written; everything is then as it was.
    """
    _check_name(path)
    # In memory first, for torch's writer can end the process where a disk is full.
    buffer = io.BytesIO()
    torch.save(checkpoint, buffer)
    target = os.path.realpath(path)
    try:
        with _made(os.path.dirname(target)):
            _replace(target, buffer.getbuffer())
    except OSError as error:
        raise UsageError(f'{path} was not written: {error.strerror or error}.') from error


def _check_name(path: str | os.PathLike) -> None:
    name = os.fspath(path)
    if not name:
        raise UsageError('the name of the file to write is empty: give one.')
    if os.path.isdir(name) or os.path.basename(name) in ('', '.', '..'):
        raise UsageError(f'{path} is a folder: name the file to write in it.')


@contextmanager
def _made(folder: str) -> Iterator[None]:
    """Make a folder and those around it; where what follows fails, those made go again."""
    missing = [path for path in (Path(folder), *Path(folder).parents) if not os.path.exists(path)]
    made = []
    try:
        for path in reversed(missing):
            with suppress(FileExistsError):
                path.mkdir()
                made.append(path)
        yield
    except BaseException:
        with suppress(OSError):
            for path in reversed(made):
                path.rmdir()
        raise


def _replace(target: str, content: memoryview) -> None:
    unfinished = os.path.join(os.path.dirname(target), f'.{secrets.token_hex(8)}.unfinished')
    try:
        with open(unfinished, 'xb') as stream:
            # Before there is anything to read in it.
            with suppress(FileNotFoundError):
                shutil.copymode(target, unfinished)
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, target)
    finally:
        with suppress(OSError):
            os.unlink(unfinished)
