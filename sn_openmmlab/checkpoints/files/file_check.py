"""The check of a checkpoint file before torch reads it."""

import io
import os

import torch

from sn_openmmlab.checkpoints.files.archive import check_archive, is_archive
from sn_openmmlab.checkpoints.files.pickle_rules import check_call
from sn_openmmlab.checkpoints.files.pickle_scan import scan_pickle
from sn_openmmlab.errors import UsageError

# In torch's older format: a magic number, a version, the machine, the content, the storages' keys.
_LEGACY_PICKLES = 5


def check_file(path: str) -> None:
    """Raise an error if reading a file with torch could take far more memory than it has bytes.

    Raises:
        UsageError: it could, or the file is a TorchScript archive.
        Exception: it is no checkpoint, damaged, or asks for calls that `torch.save` never writes.
            The message of the latter holds `GLOBAL` and the name of the function.
    """
    with open(path, 'rb') as stream:
        if is_archive(stream):
            check_archive(stream, path)
            stream.seek(0)
            # The same that torch.load uses: two readers could see different parts.
            reader = torch._C.PyTorchFileReader(stream)
            if reader.has_record('constants.pkl'):
                raise UsageError(
                    f'{path} holds a TorchScript program, not only weights: save the state_dict() '
                    'of the model in place of it.'
                )
            pickles, number = io.BytesIO(reader.get_record('data.pkl')), 1
        else:
            stream.seek(0)
            pickles, number = stream, _LEGACY_PICKLES
        storages = [s for _ in range(number) for s in scan_pickle(pickles, check_call)]
    # Each element takes a byte at least.
    if sum(storage.numel for storage in storages) > os.path.getsize(path):
        raise ValueError('its storages are larger than the file')
