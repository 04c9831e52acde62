"""One sentence where a training has no more room to write to."""

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from sn_openmmlab.errors import UsageError

# Full, a quota or a limit on the size of files is reached, or it became read-only.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


@contextmanager
def stopping_on_a_full_disk() -> Iterator[None]:
    """Turn the error of a training that cannot write a file into a UsageError.

    Raises:
        UsageError: the disk is full or cannot be written to any more.
    """
    # Python would show a traceback for each line that the log has no room for.
    shows, logging.raiseExceptions = logging.raiseExceptions, False
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise UsageError(
            f'the training stops, since {error.filename or "a file"} cannot be written: '
            f'{error.strerror}; the checkpoints that were written before are whole: make room, and '
            'go on with --resume.'
        ) from error
    finally:
        logging.raiseExceptions = shows
