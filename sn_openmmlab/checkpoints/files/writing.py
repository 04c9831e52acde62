"""Writing checkpoint files: whole, or not at all."""

import io
import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import torch

from sn_openmmlab.errors import UsageError


def check_output(path: str | os.PathLike, inputs: Iterable[str | os.PathLike]) -> None:
    """Raise UsageError where ``path`` could not be written without harm.

    That is where it is a folder, a device or write-protected, or is one of the inputs.
    """
    if os.path.isdir(path):
        raise UsageError(f'{path} is a folder: name the file to write in it.')
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

    Missing folders are made.

    Raises:
        UsageError: it cannot be written; nothing is left then of what was.
    """
    # In memory first, for torch's writer can end the process where a disk is full.
    buffer = io.BytesIO()
    torch.save(checkpoint, buffer)
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    unfinished = os.path.join(folder, f'.{secrets.token_hex(8)}.unfinished')
    try:
        os.makedirs(folder, exist_ok=True)
        with open(unfinished, 'xb') as stream:
            stream.write(buffer.getbuffer())
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, target)
    except OSError as error:
        raise UsageError(f'{path} was not written: {error.strerror or error}.') from error
    finally:
        with suppress(OSError):
            os.unlink(unfinished)
