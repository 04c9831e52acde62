"""A lock that gives one command at a time a folder of trainings."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sn_openmmlab.errors import UsageError


@contextmanager
def locked(work_dir: Path) -> Iterator[int]:
    """Hold the lock of a folder, and yield its file descriptor.

    A process that inherits the descriptor holds the lock too, even after this one was killed.

    Raises:
        UsageError: another process holds the lock, or its file cannot be written.
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
                f'{work_dir} is in use by another command or one of its trainings: '
                'wait for its end or end it, or name another --work-dir.'
            ) from error
        yield file.fileno()
