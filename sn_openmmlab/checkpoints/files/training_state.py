"""What a checkpoint holds of the training that wrote it, besides weights."""

from collections.abc import Mapping
from shlex import quote
from typing import Any

import numpy as np
from mmengine.logging import HistoryBuffer
from torch import Tensor

from sn_openmmlab.errors import UsageError

_HUB = ('log_scalars', 'runtime_info', 'resumed_keys')
_BUFFER = {'max_length', '_log_history', '_count_history'}
_BEST = 'best_score'


def check_state(checkpoint: Mapping[str, Any], source: str) -> None:
    """Raise UsageError unless a checkpoint holds the state of a training as MMEngine saves it.

    Args:
        checkpoint: with weights, as it was read.
        source: the name of its file, for the message.
    """
    meta, hub = checkpoint.get('meta'), checkpoint.get('message_hub')
    if (
        not isinstance(hub, dict)
        or not isinstance(meta, dict)
        or not {'epoch', 'iter'} <= set(meta)
    ):
        raise UsageError(
            f'{source} holds weights, but no training to resume: to start from the weights, give '
            f'{weights_alone(source)}.'
        )
    if fault := _fault(meta, hub) or _optimizer_fault(checkpoint.get('optimizer')):
        raise UsageError(
            f'{source} holds no training that can be resumed, since its {fault} is damaged: to '
            f'start from the weights, give {weights_alone(source)}.'
        )


def weights_alone(source: str) -> str:
    """Return what to give, in a shell, to start a training from a file's weights instead."""
    return f'--cfg-options {quote(f"load_from={source}")} in place of --resume'


def _fault(meta: Mapping[str, Any], hub: Mapping[str, Any]) -> str | None:
    """Return the name of what is not as MMEngine saves it, or None."""
    for name in ('epoch', 'iter'):
        if not _is_count(meta[name]):
            return f"meta['{name}']"
    if meta.get('seed') is not None and not _is_count(meta['seed']):
        return "meta['seed']"
    for name in _HUB:
        part = hub.get(name)
        if not isinstance(part, dict) or not all(isinstance(key, str) for key in part):
            return f"message_hub['{name}']"
    if not all(isinstance(value, bool) for value in hub['resumed_keys'].values()):
        return "message_hub['resumed_keys']"
    for buffer in hub['log_scalars'].values():
        # MMEngine skips others with a warning.
        if isinstance(buffer, HistoryBuffer) and not _is_history(buffer):
            return "message_hub['log_scalars']"
    for name, value in hub['runtime_info'].items():
        if name.startswith(_BEST) and not _is_score(value):
            return f"message_hub['runtime_info'] ({_BEST})"
    return None


def _optimizer_fault(optimizer: Any) -> str | None:
    """Return a name unless an optimizer holds alike parts for all weights that it has stepped."""
    # Several optimizers have names, and none may be saved.
    if optimizer is None or (isinstance(optimizer, dict) and 'param_groups' not in optimizer):
        return None
    states = optimizer.get('state') if isinstance(optimizer, dict) else None
    if not isinstance(states, dict) or not all(isinstance(s, dict) for s in states.values()):
        return 'optimizer'
    # Those of matrices and of vectors may differ, as in Adafactor, but none lacks a part.
    names = {frozenset(state) for state in states.values()}
    kinds = {
        (n, type(value)) for s in states.values() for n, value in s.items() if value is not None
    }
    lacking = any(some < others for some in names for others in names)
    return 'optimizer' if lacking or len(kinds) > len(dict(kinds)) else None


def _is_score(value: Any) -> bool:
    # Metrics of users give tensors, too.
    return isinstance(value, int | float | np.number) or (
        isinstance(value, Tensor) and value.numel() == 1
    )


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**32


def _is_history(buffer: HistoryBuffer) -> bool:
    if set(vars(buffer)) != _BUFFER or not _is_count(buffer.max_length):
        return False
    return all(
        isinstance(part, np.ndarray) and part.ndim == 1 and part.dtype.kind in 'biuf'
        for part in buffer.data
    ) and len(buffer.data[0]) == len(buffer.data[1])
