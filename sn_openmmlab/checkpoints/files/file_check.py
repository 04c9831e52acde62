"""The check of a checkpoint file before torch reads it."""

import io
import os
from typing import IO

import torch

from sn_openmmlab.checkpoints.files.archive import check_archive, is_archive
from sn_openmmlab.checkpoints.files.pickle_rules import check_call
from sn_openmmlab.checkpoints.files.pickle_scan import Storage, scan_pickle

# In torch's format before 1.6: a magic number, a version and the machine come before the content.
_BEFORE = 3
_LENGTH = 8


def check_file(path: str) -> None:
    """Raise an error if reading a file with torch could take far more memory than it has bytes.

    Raises:
        UsageError: it could, or the file is a TorchScript archive.
        Exception: it is no checkpoint, damaged, or asks for calls that `torch.save` never writes.
            The message of the latter holds `GLOBAL` and the name of the function.
    """
    with open(path, 'rb') as stream:
        storages = _scan_archive(stream, path) if is_archive(stream) else _scan_legacy(stream)
    if sum(storage.numel * storage.size for storage in storages.values()) > os.path.getsize(path):
        raise ValueError('its storages are larger than the file')


def _scan_archive(stream: IO[bytes], path: str) -> dict[str, Storage]:
    check_archive(stream, path)
    stream.seek(0)
    # The same that torch.load uses: two readers could see different parts.
    reader = torch._C.PyTorchFileReader(stream)
    return scan_pickle(io.BytesIO(reader.get_record('data.pkl')), check_call).storages


def _scan_legacy(stream: IO[bytes]) -> dict[str, Storage]:
    stream.seek(0)
    whole = _Bounded(stream)
    for _ in range(_BEFORE):
        scan_pickle(whole, check_call)
    storages = scan_pickle(whole, check_call).storages
    keys = scan_pickle(whole, check_call).value
    if not isinstance(keys, list) or sorted(keys) != sorted(storages):
        raise ValueError('the keys of the storages are others')
    # Torch makes each storage as large as the file says here.
    for key in keys:
        if int.from_bytes(whole.read(_LENGTH), 'little', signed=True) != storages[key].numel:
            raise ValueError('a storage has two sizes')
        stream.seek(storages[key].numel * storages[key].size, os.SEEK_CUR)
    return storages


class _Bounded:
    """A file that is asked for no more bytes than it has: Python makes room for all it asks for."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._size = os.fstat(stream.fileno()).st_size
        self.readline = stream.readline

    def read(self, number: int) -> bytes:
        return self._stream.read(min(number, self._size - self._stream.tell()))
