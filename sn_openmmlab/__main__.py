"""``python -m sn_openmmlab``: print the version, and which backends can run here and may."""

import os

import torch

import sn_openmmlab
from sn_openmmlab.errors import exit_with_sentence
from sn_openmmlab.kernels.agreement import dtype_name
from sn_openmmlab.ops.backends import TRITON_DTYPES, availability
from sn_openmmlab.ops.environment import BACKEND, GPU_CHECK, check_environment
from sn_openmmlab.ops.self_check import describe, examine

UNSET = {
    BACKEND: 'the fastest that can run is used (NAME: only that one; -NAME: all but that one)',
    GPU_CHECK: 'the Triton kernels are checked at their first use on each GPU (0: they are not)',
}


def main() -> None:
    """Print what can run, with the reason where it cannot, and check each GPU.

    One line per backend, the fastest last; one per environment variable; one per GPU and type.

    Raises:
        UsageError: if an environment variable has a value that means nothing.
    """
    check_environment()
    print(f'sn_openmmlab {sn_openmmlab.__version__}, torch {torch.__version__}')
    reasons = availability()
    for name, reason in reasons.items():
        print(f'{name:8}{"available" if reason is None else f"not available: {reason}"}')
    for variable, unset in UNSET.items():
        print(f'{variable:24}{os.environ.get(variable) or f"not set: {unset}"}')
    if reasons['triton'] is None:
        for number in range(torch.cuda.device_count()):
            _print_check(torch.device('cuda', number))


def _print_check(device: torch.device) -> None:
    for dtype in TRITON_DTYPES:
        reason = examine(device, dtype)
        found = 'the Triton kernels agree with torch' if reason is None else f'failed: {reason}'
        print(f'{describe(device)}, {dtype_name(dtype)}: {found}', flush=True)


if __name__ == '__main__':
    exit_with_sentence(main)
