"""Let the Triton kernels prove themselves on each GPU before they are used there.

At the first call for a device and a type, a small forward and backward pass is compared with ATen.
If that fails, the device is left to ATen from then on in this process, with one warning. Later
calls look the result up. Processes of a group need not agree: what they exchange is the same on
both backends.
"""

import threading
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from sn_openmmlab.kernels import agreement
from sn_openmmlab.kernels.agreement import Passes, by_stages, disagreement
from sn_openmmlab.ops.environment import BACKEND, backend_choice, checks_gpu
from sn_openmmlab.ops.triton_errors import explain

# Why the kernels are not used on a device for a type, or None where they were proven.
_found: dict[tuple[torch.device, torch.dtype], str | None] = {}
# Devices on which they failed, with the reason, and those that were captured before the check.
_failed: dict[torch.device, str] = {}
_captured: set[torch.device] = set()
_lock = threading.Lock()


def fault(device: torch.device, dtype: torch.dtype) -> str | None:
    """Return why the Triton kernels are not used on a device for a type, or None if they are.

    Raises:
        RuntimeError: if the kernels failed so that nothing runs on the device any more.
        UsageError: if an environment variable has a value that means nothing.
    """
    place = device, dtype
    return _found[place] if place in _found else _find(device, dtype)


def examine(device: torch.device, dtype: torch.dtype) -> str | None:
    """Compare the Triton kernels with ATen; return what is wrong, or None if they agree.

    They run in a thread of their own. What the caller may have set for its thread does not hold
    there: autocast, modes of gradients and inference, a default device, hooks, a stream.

    Raises:
        RuntimeError: as `fault`.
    """
    _synchronize(device)  # An error of what ran before is not that of the kernels.
    try:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(_compare, device, dtype).result()
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception as error:
        reason = explain(error)
        _check_alive(device, reason)
        return reason


def describe(device: torch.device) -> str:
    """Return the device as messages name it."""
    if device.type != 'cuda':
        return str(device)
    major, minor = torch.cuda.get_device_capability(device)
    name = torch.cuda.get_device_name(device)
    return f'{device} ({name}, compute capability {major}.{minor})'


def _compare(device: torch.device, dtype: torch.dtype) -> str | None:
    # Kernels are started in another way where the current device is another one.
    index = device.index if device.type == 'cuda' else -1
    with torch.no_grad(), torch.cuda.device(index):
        wrong = (disagreement(passes, device, dtype) for passes in _triton_passes())
        return next(filter(None, wrong), None)


def _triton_passes() -> Sequence[Passes]:
    """Return each way in which the op runs the kernels."""
    from sn_openmmlab.kernels.triton import stages

    return by_stages(stages), _triton_at_once


def _triton_at_once(
    x: Tensor, dy: Tensor, weight: Tensor, bias: Tensor, mean_weight: Tensor, var_weight: Tensor
) -> Sequence[Tensor]:
    """Return the passes of a process alone, whose kernels also move running statistics."""
    from sn_openmmlab.kernels.triton.whole import Layer, backward, forward

    mean, var = x.new_empty((2, x.shape[1]), dtype=torch.float32).fill_(7)
    count = torch.zeros((), dtype=torch.int64, device=x.device)
    # At a momentum of 1 the statistics become the moments of the batch.
    layer = Layer(mean, var, count, 1.0, False, agreement.MIXTURE)
    y, tables, subject = forward(x, weight, bias, mean_weight, var_weight, layer)
    known = (mean_weight, var_weight, tables, subject)
    gradients = backward(dy, x, weight, bias, *known, (True,) * 5)
    return torch.stack((mean, var)), y, *gradients


def _find(device: torch.device, dtype: torch.dtype) -> str | None:
    if checks_gpu() and device not in _failed and _is_capturing(device):
        return _why_not_captured(device)
    with _lock:
        # Another thread may have been faster.
        if (device, dtype) not in _found:
            if checks_gpu() and device not in _failed:
                _prove(device, dtype)
            _found[device, dtype] = _failed.get(device)
        return _found[device, dtype]


def _prove(device: torch.device, dtype: torch.dtype) -> None:
    reason = examine(device, dtype)
    if reason is not None:
        _failed[device] = reason
        _warn(
            f'The Triton kernels of sn_openmmlab are not used on {describe(device)}: {reason}. SN '
            "computes there by torch's own calls: the same results, but slower. python -m "
            f'sn_openmmlab repeats the check, for a report; {BACKEND}=-triton leaves the kernels '
            'out without this warning.'
        )


def _is_capturing(device: torch.device) -> bool:
    if device.type != 'cuda':
        return False
    with torch.cuda.device(device):
        return torch.cuda.is_current_stream_capturing()


def _why_not_captured(device: torch.device) -> str:
    """Return why a graph is captured without the kernels: a capture allows no check."""
    reason = (
        f'a CUDA graph is captured on {device} before the Triton kernels were checked there; run '
        'the model once before the capture'
    )
    if device not in _captured:
        _captured.add(device)
        _warn(f"SN puts torch's own, slower calls into this CUDA graph: {reason}.")
    return reason


def _check_alive(device: torch.device, reason: str) -> None:
    """Raise an error if the device is of no use after a failure, as after an illegal access."""
    try:
        _synchronize(device)
    except RuntimeError as error:
        raise RuntimeError(
            f'The Triton kernels of sn_openmmlab failed on {device} ({reason}), and nothing runs '
            f'there any more in this process: start it again with {BACKEND}=-triton, which leaves '
            'the kernels out.'
        ) from error


def _synchronize(device: torch.device) -> None:
    if device.type == 'cuda':
        torch.cuda.synchronize(device)


def _warn(message: str) -> None:
    """Warn that the op goes on without the kernels; where they are forced, it is an error."""
    if backend_choice().forced is None:
        warnings.warn(message, stacklevel=1)
