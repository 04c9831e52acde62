"""Choose the backend that computes the op.

To add one: a package in `kernels` (see `kernels/contract.py`), its name in `FUSED`, what keeps it
from running in `obstacle`, and its modules in `fused_kernels`.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import torch
from torch import Tensor
from torch.autograd import forward_ad

from sn_openmmlab.kernels.contract import Kernels
from sn_openmmlab.kernels.triton import FUSED_SCOPES

# The fastest first.
FUSED = ('triton', 'aten')
BACKENDS = ('plain', *reversed(FUSED))
TRITON_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
# The oldest version that the kernels are tested with.
OLDEST_TRITON = (3, 6)

_forced: str | None = None


class BackendError(RuntimeError):
    """A backend was forced that cannot run on this input; the message says why."""


@contextmanager
def use_backend(name: str) -> Iterator[None]:
    """Compute every `switch_norm` inside by one backend, in all threads.

    For tests and benchmarks. Without it the fastest backend that can run is chosen per call. The
    backward pass runs on the backend of its forward pass, wherever it is called.

    Args:
        name: `'plain'`, one expression differentiated by autograd; `'aten'`, the fused op made of
            ATen calls; `'triton'`, the fused op made of Triton kernels.

    Raises:
        ValueError: if there is no backend of that name.
        BackendError: by the op, if the backend cannot run on its input.
    """
    global _forced
    if name not in BACKENDS:
        known = ', '.join(repr(backend) for backend in BACKENDS)
        raise ValueError(f'unknown backend {name!r}: choose one of {known}.')
    before, _forced = _forced, name
    try:
        yield
    finally:
        _forced = before


def choose_backend(x: Tensor, scopes: Sequence[str] = ()) -> str:
    """Return the backend for `x` and `scopes`: the forced one, or the fastest that can run.

    Raises:
        BackendError: if the forced one cannot run.
    """
    if _forced is None:
        usable = (name for name in FUSED if obstacle(name, x, scopes) is None)
        return next(usable, 'plain')
    reason = obstacle(_forced, x, scopes)
    if reason is not None:
        raise BackendError(
            f"backend '{_forced}' cannot run here: {reason}; leave use_backend('{_forced}') out, "
            'and the op chooses one that can.'
        )
    return _forced


def fused_kernels(name: str) -> Kernels:
    """Return the kernels of a fused backend, which are imported at the first use."""
    if name == 'triton':
        from sn_openmmlab.kernels.triton import passes, tables
    else:
        from sn_openmmlab.kernels.aten import passes, tables
    return Kernels(passes, tables)


def obstacle(name: str, x: Tensor, scopes: Sequence[str] = ()) -> str | None:
    """Return why backend `name` cannot run on `x` and `scopes`, or None where it can."""
    if name == 'plain':
        return None
    if _is_traced():
        return 'torch.compile, torch.export and tracing need the plain expression'
    if torch._C._are_functorch_transforms_active() or torch._C._functorch.is_legacy_batchedtensor(
        x
    ):
        return 'the transforms of torch.func need the plain expression'
    if forward_ad._current_level >= 0:
        return 'forward-mode differentiation needs the plain expression'
    if x.is_meta or torch._C._len_torch_dispatch_stack() > 0:
        return 'tensors without data and dispatch modes need the plain expression'
    if x.device.type == 'mps':
        return 'its tables are float64, which MPS does not have'
    return _triton_obstacle(x, scopes) if name == 'triton' else None


def _is_traced() -> bool:
    return torch.compiler.is_compiling() or torch.jit.is_tracing() or torch.jit.is_scripting()


def _triton_obstacle(x: Tensor, scopes: Sequence[str]) -> str | None:
    if not x.is_cuda and not (_forced == 'triton' and x.is_cpu and _interprets()):
        return f'Triton needs a CUDA tensor, and the input is on {x.device}'
    installed = _triton_version()
    if installed is None:
        return 'Triton is not installed'
    if installed < OLDEST_TRITON:
        return f'it needs Triton {".".join(map(str, OLDEST_TRITON))} or newer'
    if x.dtype not in TRITON_DTYPES:
        return f'the Triton kernels take float32, float16 and bfloat16, not {x.dtype}'
    unknown = [scope for scope in scopes if scope not in FUSED_SCOPES]
    return f"the Triton kernels do not fuse the scope '{unknown[0]}'" if unknown else None


@cache
def _triton_version() -> tuple[int, int] | None:
    try:
        import triton
    except ImportError:
        return None
    major, minor, *_ = triton.__version__.split('.')
    return int(major), int(minor)


def _interprets() -> bool:
    """Return whether Triton runs its kernels on the CPU, for tests."""
    return os.environ.get('TRITON_INTERPRET') == '1'
