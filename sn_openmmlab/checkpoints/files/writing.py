"""Writing files: whole, or not at all."""

import io
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from sn_openmmlab.errors import UsageError

_UNFINISHED = '.unfinished'


def check_output(path: str | os.PathLike, inputs: Iterable[str | os.PathLike] = ()) -> None:
    """Raise UsageError if `path` is no file name, a folder or device, read-only or an input."""
    name = os.fspath(path)
    if not name:
        raise UsageError('the name of the file to write is empty: give one.')
    if os.path.isdir(name) or os.path.basename(name) in ('', '.', '..'):
        raise UsageError(f'{path} is a folder: name the file to write in it.')
    if not os.path.exists(path):
        return
    if any(os.path.exists(file) and os.path.samefile(path, file) for file in inputs):
        raise UsageError(f'{path} is read and would be overwritten: name another file to write.')
    if not os.path.isfile(path):
        raise UsageError(f'{path} is not a regular file: name another file to write.')
    if not os.access(path, os.W_OK):
        raise UsageError(f'{path} exists and is write-protected: name another file to write.')


def write_checkpoint(checkpoint: Mapping[str, Any], path: str | os.PathLike) -> None:
    """Save a checkpoint in place of the file `path`, at once and with its permissions.

    Missing folders are made.

    Raises:
        UsageError: The file cannot be written. An older file is then as it was.
    """
    # In memory first, since torch's own writer can abort the process on a full disk.
    buffer = io.BytesIO()
    torch.save(checkpoint, buffer)
    write_file(buffer.getbuffer(), path)


def write_file(content: bytes | memoryview, path: str | os.PathLike) -> None:
    """Write the file `path` as `write_checkpoint` does: whole or not at all.

    Raises:
        UsageError: The file cannot be written. An older file is then as it was.
    """
    check_output(path)
    try:
        replace_file(content, path)
    except OSError as error:
        raise UsageError(f'{path} was not written: {error.strerror or error}.') from error


def replace_file(content: bytes | memoryview, path: str | os.PathLike) -> None:
    """Write a regular file under another name, then put it in place of `path` at once.

    Raises:
        OSError: The file cannot be written. It has the name `path`, and an older file is as it was.
    """
    target = Path(os.path.realpath(path))
    unfinished = target.with_name(f'.{secrets.token_hex(8)}{_UNFINISHED}')
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(unfinished, 'xb') as stream:
            # Before there is content that others could read.
            with suppress(FileNotFoundError):
                shutil.copymode(target, unfinished)
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, target)
    except OSError as error:
        error.filename = os.fspath(path)
        raise
    finally:
        with suppress(OSError):
            os.unlink(unfinished)


def remove_unfinished(folder: str | os.PathLike) -> list[str]:
    """Remove what `replace_file` left in a folder when its process was killed; return the names."""
    names = [path.name for path in Path(folder).glob(f'.{"[0-9a-f]" * 16}{_UNFINISHED}')]
    for name in names:
        with suppress(OSError):
            os.unlink(Path(folder) / name)
    return names
