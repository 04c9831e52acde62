"""Reading checkpoints from files, URLs and model zoos, without running code in them."""

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
    """Read a checkpoint from a file, a URL or a model zoo, such as `torchvision://resnet50`.

    Raises:
        UsageError: `source` is not a string or path, it cannot be loaded, or see
            `read_checkpoint`.
    """
    if not isinstance(source, str | os.PathLike):
        raise UsageError(f'a checkpoint must be the name of a file or a URL, not {source!r}.')
    source = os.fsdecode(source)
    if '://' not in source:
        return read_checkpoint(source, map_location)
    try:
        with _weights_only():
            checkpoint = CheckpointLoader.load_checkpoint(source, map_location)
    except UnpicklingError as error:
        raise UsageError(
            f'{source} was not loaded: it is damaged, or it holds more than weights and could run '
            'code.'
        ) from error
    except Exception as error:  # Each kind of source has its own errors.
        reason = str(error).strip().split('\n')[0]
        raise UsageError(
            f'{source} could not be loaded ({type(error).__name__}: {reason}): name a file.'
        ) from error
    check_content(checkpoint, source)
    return checkpoint


@contextmanager
def _weights_only() -> Iterator[None]:
    """Make every `torch.load` use `weights_only=True`, whatever its arguments."""
    before = {name: os.environ.pop(name, None) for name in (_FORCED, _FORBIDDEN)}
    os.environ[_FORCED] = '1'
    try:
        yield
    finally:
        os.environ.pop(_FORCED)
        os.environ.update({name: value for name, value in before.items() if value is not None})
