"""Keeping a folder of trainings to one tool at a time."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sn_openmmlab.errors import UsageError


@contextmanager
def locked(work_dir: Path) -> Iterator[int]:
    """Hold a folder's lock, whose file descriptor this yields.

    A process that inherits the descriptor holds the lock too, also after this one was killed.

    Raises:
        UsageError: another process holds it, or the file of the lock cannot be written.
    """
    try:
        file = (work_dir / 'lock').open('w')
    except OSError as error:
        raise UsageError(f'{work_dir} cannot be locked: {error}.') from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(
                f'{work_dir} is in use by another tool or by a training that it left: '
                'wait for its end or end it, or name another --work-dir.'
            ) from error
        yield file.fileno()
