"""The zip archives that `torch.save` writes: nothing is compressed, and all parts are known."""

import os
import zipfile
from typing import IO

from sn_openmmlab.errors import UsageError

# The sizes of the records that end an archive: of all, and of one with 64-bit numbers.
_END, _LOCATOR, _END_64 = 22, 20, 56


def is_archive(stream: IO[bytes]) -> bool:
    """Return whether a file begins as an archive; torch looks nowhere else."""
    stream.seek(0)
    return stream.read(4) == b'PK\x03\x04'


def check_archive(stream: IO[bytes], name: str) -> None:
    """Raise an error if reading the archive would take more memory than the file has bytes.

    Args:
        stream: of the file.
        name: of the file, for the message.

    Raises:
        UsageError: it would, or it is a TorchScript archive.
        ValueError: torch's reader could see other parts in the archive than Python's.
        BadZipFile: it is damaged.
    """
    size = os.fstat(stream.fileno()).st_size
    _check_end(stream, size)
    with zipfile.ZipFile(stream) as archive:
        parts = archive.infolist()
    if any(part.filename.endswith('/constants.pkl') for part in parts):
        raise UsageError(
            f'{name} holds a TorchScript program, not only weights: save the state_dict() of the '
            'model in place of it.'
        )
    unpacked = sum(part.file_size for part in parts)
    stored = all(part.compress_type == zipfile.ZIP_STORED for part in parts)
    if unpacked > size or not stored:
        raise UsageError(
            f'{name} was not loaded: it would unpack to {unpacked} bytes, more than the file has, '
            'but torch.save does not compress.'
        )


def _check_end(stream: IO[bytes], size: int) -> None:
    """Raise ValueError unless the table of parts is where every reader looks for it.

    The table has to lie directly before the records that name its place, and these at the end.
    Readers differ in how they look for a table elsewhere.
    """
    tail = min(size, _END_64 + _LOCATOR + _END)
    stream.seek(size - tail)
    end = stream.read(tail)
    place, length = (int.from_bytes(end[a : a + 4], 'little') for a in (tail - 6, tail - 10))
    known = end[-_END:-18] == b'PK\x05\x06' and end[-2:] == b'\0\0'
    after = size - _END
    if end[-_END - _LOCATOR :][:4] == b'PK\x06\x07':
        after = size - tail
        wide = [int.from_bytes(end[a : a + 8], 'little') for a in (40, 48, tail - _END - 12)]
        known &= end[:4] == b'PK\x06\x06' and wide[2] == after
        known &= length in (wide[0], 2**32 - 1) and place in (wide[1], 2**32 - 1)
        length, place = wide[:2]
    if not known or place + length != after:
        raise ValueError('the archive does not end as torch.save ends it')
