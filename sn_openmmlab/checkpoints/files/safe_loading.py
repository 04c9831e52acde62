"""Reading checkpoint files without running code in them."""

import os
import re
from typing import Any

import torch
from mmengine.runner import CheckpointLoader

from sn_openmmlab.checkpoints.files.content_size import content_size
from sn_openmmlab.checkpoints.files.damage import is_damaged
from sn_openmmlab.checkpoints.files.file_check import check_file
from sn_openmmlab.checkpoints.files.safe_globals import allow_mmengine_checkpoints
from sn_openmmlab.checkpoints.files.training_state import check_state
from sn_openmmlab.errors import UsageError

# A model may have the same weights in several heads, or a small tensor that is shown repeated.
_MOST_COPIES, _ALWAYS = 16, 1 << 26


def load_safely() -> None:
    """Make MMEngine load every checkpoint with `weights_only=True` from now on.

    If torch refuses a file, OneDL's MMEngine reads it again without `weights_only`, which runs the
    code in it. Torch's own switch forbids that, in this process and in those that it starts.
    """
    allow_mmengine_checkpoints()
    os.environ.pop('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', None)
    os.environ['TORCH_FORCE_WEIGHTS_ONLY_LOAD'] = '1'
    CheckpointLoader.register_scheme('', _load_from_local, force=True)


def read_checkpoint(path: str | os.PathLike, map_location: Any = 'cpu') -> dict:
    """Read a checkpoint file.

    Raises:
        UsageError: The file is missing, not readable, not a checkpoint, cut short or compressed;
            or it holds more than tensors, plain values and what MMEngine writes, and so could
            run code.
    """
    path = os.path.expanduser(path)
    if os.path.isdir(path):
        raise UsageError(f'{path} is a folder: name a checkpoint file in it.')
    if not os.path.exists(path):
        raise UsageError(f'there is no checkpoint file {path}.')
    if not os.path.isfile(path):
        raise UsageError(f'{path} is not a regular file: name a checkpoint file.')
    try:
        check_file(path)
        checkpoint = torch.load(path, map_location=map_location, weights_only=True)
        copied = content_size(checkpoint)
    except UsageError:
        raise
    except PermissionError as error:
        raise UsageError(f'{path} cannot be read: {error.strerror}.') from error
    except Exception as error:  # Damaged bytes can raise anything.
        refused = re.search(r'GLOBAL ([\w.]+)', str(error))
        if refused:
            raise UsageError(
                f'{path} was not loaded: it holds {refused[1]}, which is neither a tensor nor '
                'something that MMEngine saves, and could run code.'
            ) from error
        raise UsageError(f'{path} is not a checkpoint, or is damaged or cut short.') from error
    check_content(checkpoint, path)
    if copied > max(_MOST_COPIES * os.path.getsize(path), _ALWAYS):
        raise UsageError(
            f'{path} was not loaded: copies of its content would take {copied} bytes, far more '
            'than the file has.'
        )
    return checkpoint


def check_content(checkpoint: Any, source: str) -> None:
    """Raise UsageError unless `checkpoint`, which was read from `source`, has weights by name."""
    state = checkpoint.get('state_dict', checkpoint) if isinstance(checkpoint, dict) else checkpoint
    if not isinstance(state, dict) or not all(isinstance(key, str) for key in state):
        raise UsageError(f'{source} holds no weights by name, but a {type(state).__name__}.')


def check_resumable(path: str | os.PathLike) -> None:
    """Raise UsageError unless training can be resumed from the checkpoint file."""
    check_state(read_checkpoint(path), os.fspath(path))
    if is_damaged(path):
        raise UsageError(f'{path} is damaged, as its checksums show: name another checkpoint.')


def _load_from_local(filename: str, map_location: Any) -> dict:
    checkpoint = read_checkpoint(filename, map_location)
    # Runner.resume would run the config that mmcv 1 saved.
    if isinstance(checkpoint.get('meta'), dict):
        checkpoint['meta'].pop('config', None)
    return checkpoint
