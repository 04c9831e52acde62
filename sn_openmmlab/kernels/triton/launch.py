"""Start kernels, by Triton's ordinary launch once and then at a fraction of its host time.

The ordinary launch inspects every argument to find what it compiled, which takes longer than the
rest of a call. A `Launch` belongs to a plan for fixed shapes, strides, types and alignments, so it
needs that only once. Then it hands the arguments straight to the compiled kernel's launcher.
"""

import inspect
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
import triton
from torch import Tensor
from triton import knobs
from triton.runtime import driver

# Triton decides this as it reads the kernels.
_INTERPRETS = knobs.runtime.interpret
# What Triton's launchers take before the arguments of the kernel. The oldest supported version
# passes the last four on unnamed.
_LAUNCHER = ['self', 'gridX', 'gridY', 'gridZ', 'stream', 'function']
_NAMED = ['kernel_metadata', 'launch_metadata', 'launch_enter_hook', 'launch_exit_hook']
_KNOWN_LAUNCHERS = ([*_LAUNCHER, 'args'], [*_LAUNCHER, *_NAMED, 'args'])


class Launch:
    """A kernel, with what is the same in all calls of a plan.

    Args:
        kernel: a kernel, whose first argument is a tensor on the device to run on.
        programs: the number of programs; with 0 nothing is started.
        values: the last arguments of the kernel: numbers, then constants.
        **options: of the compiler, such as `num_warps`.
    """

    __slots__ = ('_function', '_kernel', '_metadata', '_options', '_programs', '_run', '_values')

    def __init__(self, kernel: Any, programs: int, values: Sequence[Any], **options: int) -> None:
        self._kernel = kernel
        self._programs = programs
        self._values = tuple(values)
        self._options = options
        self._run: Any = None

    def __call__(self, stream: int | None, *arguments: Any) -> None:
        """Start the kernel.

        Args:
            stream: of `direct_stream`.
            *arguments: the first arguments of the kernel, of the same types, and None in the same
                places, in all calls.
        """
        run = self._run
        if stream is None or run is None:
            self._start(arguments)
            return
        hooks = (None, None, None)  # and the metadata that they would be given
        start = (self._programs, 1, 1, stream, self._function, self._metadata)
        run(*start, *hooks, *arguments, *self._values)

    def _start(self, arguments: Sequence[Any]) -> None:
        """Start the kernel by Triton's ordinary launch, and keep what it compiled."""
        if self._programs == 0:
            return
        # Triton launches on the current device, which need not be the tensor's.
        with torch.cuda.device_of(arguments[0]):
            launched = self._kernel[(self._programs,)](*arguments, *self._values, **self._options)
        # The interpreter compiles nothing.
        if launched is not None and _is_known(type(launched.run)):
            self._function, self._metadata = launched.function, launched.packed_metadata
            # Last, since other threads look at this one.
            self._run = launched.run


def direct_stream(x: Tensor) -> int | None:
    """Return the current stream of the device of `x`, for `Launch`; None for ordinary launches.

    Those are needed where Triton interprets, where a profiler or others have set launch hooks, and
    where the tensor is on another device than the current one.
    """
    if _INTERPRETS or _has_hooks():
        return None
    active, index = driver.active, x.get_device()
    return active.get_current_stream(index) if active.get_current_device() == index else None


def check_device(x: Tensor, control: Tensor) -> None:
    """Raise RuntimeError where a layer is not on the device of its input: kernels do not look.

    Args:
        x: the input.
        control: λ, in place of all tensors of the layer, which move together.
    """
    if control.get_device() != x.get_device():
        raise RuntimeError(
            f'the input is on {x.device}, but the layer is on {control.device}: move both to one '
            'device.'
        )


def block(size: int, limit: int) -> int:
    """Return the power of two that covers `size`, at most `limit`, itself a power of two."""
    return min(triton.next_power_of_2(max(size, 1)), limit)


def blocks(size: int, length: int) -> int:
    """Return how many blocks of `length` cover `size`."""
    return triton.cdiv(size, length)


def _has_hooks() -> bool:
    return _calls(knobs.runtime.launch_enter_hook) or _calls(knobs.runtime.launch_exit_hook)


def _calls(hook: Any) -> bool:
    """Return whether a hook does anything: a chain of calls, or what was set in its place."""
    return hook is not None and bool(getattr(hook, 'calls', True))


@cache
def _is_known(launcher: type) -> bool:
    """Return whether a launcher takes the arguments that `Launch` gives it."""
    try:
        names = list(inspect.signature(launcher.__call__).parameters)
    except ValueError:  # it is not written in Python
        return False
    return names in _KNOWN_LAUNCHERS
