"""Times of functions that take turns, so that a disturbance affects all of them."""

import ctypes
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median

import torch

# In a turn, calls together go over about as many elements as this: single calls on small inputs are
# too short for a clock.
_ELEMENTS_PER_TURN = 10**6
_MOST_CALLS = 100
_CUDA_CALLS = 5
# Fewer elements than this are timed on one thread: BatchNorm starts others for them as well, and
# waits for them longer than it computes where they sleep between calls, as our tools have them.
SMALL = 10**5
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4


def keep_freed_memory() -> bool:
    """Let glibc keep freed memory, as PyTorch's allocator for CUDA does; return False elsewhere.

    By default a large output is new memory from the system. Its page faults take longer than the
    arithmetic, and which layer pays for them is chance.
    """
    if platform.libc_ver()[0] != 'glibc':
        return False
    libc = ctypes.CDLL(None)
    return bool(libc.mallopt(_M_MMAP_MAX, 0) and libc.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1))


def calls_per_turn(elements: int) -> int:
    """Return how often to call a function on this many elements in a turn: 2 to 100 times."""
    return max(2, min(_MOST_CALLS, _ELEMENTS_PER_TURN // elements))


@contextmanager
def threads_for(elements: int) -> Iterator[None]:
    """Use one thread inside if there are fewer elements than `SMALL`."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if elements < SMALL else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def time_in_turns(
    functions: Mapping[str, Callable[[], object]], rounds: int, device: torch.device, calls: int
) -> dict[str, list[float]]:
    """Return the milliseconds of each function in each round.

    In every round each function takes its turn: one call to warm up its caches and its memory,
    then timed calls, of which the median counts. Times of one round can be compared.

    Args:
        functions: the functions to time, by name.
        rounds: the number of rounds.
        device: the device they run on.
        calls: the number of timed calls in a turn.
    """
    clock = _time_on_cuda if device.type == 'cuda' else _time_on_cpu
    times = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            function()
            times[name].append(median(clock(function) for _ in range(calls)))
    return times


def _time_on_cpu(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) * 1e3


def _time_on_cuda(function: Callable[[], object]) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    # Several calls, since a training keeps the device's queue filled.
    for _ in range(_CUDA_CALLS):
        function()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / _CUDA_CALLS
