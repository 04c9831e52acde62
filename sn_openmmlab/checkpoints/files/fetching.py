"""Getting checkpoints from wherever mmengine can, without running what they may hold."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pickle import UnpicklingError
from typing import Any

from mmengine.runner import CheckpointLoader

from sn_openmmlab.checkpoints.files.safe_loading import check_content, read_checkpoint
from sn_openmmlab.errors import UsageError

_FORCED, _FORBIDDEN = 'TORCH_FORCE_WEIGHTS_ONLY_LOAD', 'TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD'


def fetch_checkpoint(source: str | os.PathLike, map_location: Any = 'cpu') -> dict:
    """Read a checkpoint of a file, an address or a model zoo, as ``torchvision://resnet50``.

    Raises:
        UsageError: it names nothing, it cannot be had, or see
            :func:`~sn_openmmlab.checkpoints.files.safe_loading.read_checkpoint`.
    """
    if not isinstance(source, str | os.PathLike):
        raise UsageError(f'a checkpoint must be the name of a file or an address, not {source!r}.')
    source = os.fsdecode(source)
    if '://' not in source:
        return read_checkpoint(source, map_location)
    try:
        with _weights_only():
            checkpoint = CheckpointLoader.load_checkpoint(source, map_location)
    except UnpicklingError as error:
        raise UsageError(
            f'{source} was not loaded: it is damaged, or holds more than weights and could run '
            'code.'
        ) from error
    except Exception as error:  # Each place has its own ways to fail.
        reason = str(error).strip().split('\n')[0]
        raise UsageError(
            f'{source} cannot be had ({type(error).__name__}: {reason}): name a file.'
        ) from error
    check_content(checkpoint, source)
    return checkpoint


@contextmanager
def _weights_only() -> Iterator[None]:
    """Let every ``torch.load`` be one with ``weights_only=True``, whatever it was called with."""
    before = {name: os.environ.pop(name, None) for name in (_FORCED, _FORBIDDEN)}
    os.environ[_FORCED] = '1'
    try:
        yield
    finally:
        os.environ.pop(_FORCED)
        os.environ.update({name: value for name, value in before.items() if value is not None})
