"""Times of rivals that take turns, so that what disturbs one disturbs all."""

import ctypes
import platform
import time
from collections.abc import Callable, Mapping
from statistics import median

import torch

CALLS_PER_TURN = 2
_CUDA_CALLS = 5
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4


def keep_freed_memory() -> bool:
    """Let glibc keep what is freed, as PyTorch's allocator for CUDA does; False elsewhere.

    By default a large output is new memory from the system, whose page faults take longer than the
    arithmetic, and which rival pays for them depends on who freed what before.
    """
    if platform.libc_ver()[0] != 'glibc':
        return False
    libc = ctypes.CDLL(None)
    return bool(libc.mallopt(_M_MMAP_MAX, 0) and libc.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1))


def time_in_turns(
    functions: Mapping[str, Callable[[], object]], rounds: int, device: torch.device
) -> dict[str, float]:
    """Return the median time of each function in milliseconds.

    In every round each function has its turn: one call that is not timed, which brings back its
    caches and its pattern of memory, and :data:`CALLS_PER_TURN` that are.

    Args:
        functions: what to time, by name.
        rounds: the number of rounds.
        device: where it runs.
    """
    clock = _time_on_cuda if device.type == 'cuda' else _time_on_cpu
    times = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            function()
            times[name] += [clock(function) for _ in range(CALLS_PER_TURN)]
    return {name: median(values) for name, values in times.items()}


def _time_on_cpu(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) * 1e3


def _time_on_cuda(function: Callable[[], object]) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    # Several, since a training keeps the device's queue filled.
    for _ in range(_CUDA_CALLS):
        function()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / _CUDA_CALLS
