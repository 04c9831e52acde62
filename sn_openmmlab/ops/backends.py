"""Choose the backend that computes the op.

To add one: a package in `kernels` (see `kernels/contract.py`), its name in `environment.py`, what
keeps it from running in `obstacle`, and its module in `fused_stages`.
"""

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor
from torch.autograd import forward_ad

from sn_openmmlab.kernels.contract import Stages
from sn_openmmlab.kernels.cpp.library import why_missing
from sn_openmmlab.kernels.triton import FUSED_SCOPES
from sn_openmmlab.ops.environment import BACKEND, BACKENDS, backend_choice
from sn_openmmlab.ops.self_check import fault
from sn_openmmlab.ops.triton_errors import explain

TRITON_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
CPP_DTYPES = (torch.float64, *TRITON_DTYPES)
# The oldest version that the kernels are tested with.
OLDEST_TRITON = (3, 6)

_forced: str | None = None


class BackendError(RuntimeError):
    """A backend was forced that cannot run on this input; the message says why."""


@contextmanager
def use_backend(name: str) -> Iterator[None]:
    """Compute every `switch_norm` inside by one backend, in all threads.

    For tests and benchmarks: it overrides the environment variables, and the Triton kernels run
    unchecked. Without it the fastest backend that can run is chosen per call. The backward pass
    runs on the backend of its forward pass, wherever it is called.

    Args:
        name: `'plain'`, one expression differentiated by autograd; `'aten'`, the fused op made of
            ATen calls; `'cpp'`, compiled for the CPU; `'triton'`, made of Triton kernels.

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
        UsageError: if an environment variable has a value that means nothing.
    """
    if _forced is not None:
        _refuse_if(obstacle(_forced, x, scopes), _forced, f"leave use_backend('{_forced}') out")
        return _forced
    if _why_plain(x) is not None:
        return 'plain'
    forced, names = backend_choice()
    # A loop: this is asked for every call, and a generator takes longer.
    for name in names:
        reason = _own_obstacle(name, x, scopes)
        if reason is None:
            return name
        if forced is not None:
            _refuse_if(reason, forced, f'unset {BACKEND}')
    return 'plain'


def availability() -> dict[str, str | None]:
    """Return each backend with why it cannot run on this machine; None where it can."""
    no_device = None if torch.cuda.is_available() else 'there is no CUDA device'
    reasons = {'cpp': why_missing(), 'triton': no_device or _why_no_triton()}
    return {name: reasons.get(name) for name in BACKENDS}


def fused_stages(name: str) -> Stages:
    """Return the stages of a fused backend, which are imported at the first use."""
    if name == 'triton':
        from sn_openmmlab.kernels.triton import stages
    elif name == 'cpp':
        from sn_openmmlab.kernels.cpp import stages
    else:
        from sn_openmmlab.kernels.aten import stages
    return stages


def _refuse_if(reason: str | None, name: str, cure: str) -> None:
    if reason is not None:
        raise BackendError(
            f"backend '{name}' cannot run here: {reason}; {cure}, and the op chooses one that can."
        )


def obstacle(name: str, x: Tensor, scopes: Sequence[str] = ()) -> str | None:
    """Return why backend `name` cannot run on `x` and `scopes`, or None where it can."""
    if name == 'plain':
        return None
    return _why_plain(x) or _own_obstacle(name, x, scopes)


def _why_plain(x: Tensor) -> str | None:
    """Return why only the plain expression can run on `x`, or None."""
    if torch.compiler.is_compiling() or torch._C._is_tracing():
        return 'torch.compile, torch.export and tracing need the plain expression'
    if torch._C._are_functorch_transforms_active() or torch._C._functorch.is_legacy_batchedtensor(
        x
    ):
        return 'the transforms of torch.func need the plain expression'
    if forward_ad._current_level >= 0:
        return 'forward-mode differentiation needs the plain expression'
    if x.is_meta or torch._C._len_torch_dispatch_stack() > 0:
        return 'tensors without data and dispatch modes need the plain expression'
    if x.is_mps:
        return 'its tables are float64, which MPS does not have'
    return None


def _own_obstacle(name: str, x: Tensor, scopes: Sequence[str]) -> str | None:
    if name == 'triton':
        return _triton_obstacle(x, scopes)
    return _cpp_obstacle(x) if name == 'cpp' else None


def _cpp_obstacle(x: Tensor) -> str | None:
    if not x.is_cpu:
        return 'the C++ kernels need a tensor on the CPU'
    if type(x).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        return f'a {type(x).__name__} has operators of its own, which the C++ kernels do not know'
    if x.dtype not in CPP_DTYPES:
        return f'the C++ kernels take float64, float32, float16 and bfloat16, not {x.dtype}'
    return why_missing()


def _triton_obstacle(x: Tensor, scopes: Sequence[str]) -> str | None:
    if not _is_for_triton(x):
        return 'Triton needs a CUDA tensor'
    if _why_no_triton() is not None:
        return _why_no_triton()
    if x.dtype not in TRITON_DTYPES:
        return f'the Triton kernels take float32, float16 and bfloat16, not {x.dtype}'
    unknown = [scope for scope in scopes if scope not in FUSED_SCOPES]
    if unknown:
        return f"the Triton kernels do not fuse the scope '{unknown[0]}'"
    # Tests and benchmarks force it to find out by themselves.
    return None if _forced == 'triton' else fault(x.device, x.dtype)


def _is_for_triton(x: Tensor) -> bool:
    return x.is_cuda or (_forced == 'triton' and x.is_cpu and _interprets())


def _why_no_triton() -> str | None:
    installed = _triton_version()
    if isinstance(installed, str):
        return installed
    if installed >= OLDEST_TRITON:
        return None
    return f'it needs Triton {".".join(map(str, OLDEST_TRITON))} or newer'


@cache
def _triton_version() -> tuple[int, int] | str:
    """Import Triton; return its version, or why there is none."""
    if find_spec('triton') is None:
        return 'Triton is not installed'
    try:
        import triton
    except Exception as error:
        reason = f'Triton cannot be imported ({explain(error)})'
        slower = "On GPUs SN computes by torch's own calls: the same results, but slower."
        warnings.warn(f'{reason}. {slower}', stacklevel=1)
        return reason
    major, minor, *_ = triton.__version__.split('.')
    return int(major), int(minor)


def _interprets() -> bool:
    """Return whether Triton runs its kernels on the CPU, for tests."""
    return os.environ.get('TRITON_INTERPRET') == '1'
