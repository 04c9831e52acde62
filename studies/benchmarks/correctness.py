"""Errors of the backends on a device, relative to the plain expression in float64."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor

from sn_openmmlab.ops.backends import use_backend
from sn_openmmlab.ops.switch_norm import switch_norm
from studies.benchmarks.cases import FORMATS

SHAPES = ((2, 64, 50, 76), (3, 32, 1, 1), (300, 64, 7, 7), (1, 32, 300, 301), (5, 96, 13, 17))
SCOPES = (('in', 'ln', 'bn'), ('gn', 'bn'), ('ln',))
# The largest error over the largest value, for output and gradients.
BOUNDS = {torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 4e-2}
QUANTITIES = ('y', 'dx', 'dγ', 'dβ', 'dλ', 'dλ′')


def check_backend(backend: str, device: torch.device) -> list[dict[str, Any]]:
    """Return the largest error of each quantity over all shapes, per type and memory format.

    Records hold `backend`, `dtype`, `format`, `errors` by quantity, and `bound`.
    """
    records = []
    for dtype, bound in BOUNDS.items():
        worst = {memory_format: dict.fromkeys(QUANTITIES, 0.0) for memory_format in FORMATS}
        for shape, scopes in product(SHAPES, SCOPES):
            for memory_format, errors in _errors(backend, shape, scopes, dtype, device).items():
                before = worst[memory_format]
                worst[memory_format] = {name: max(before[name], errors[name]) for name in errors}
        case = {'backend': backend, 'dtype': str(dtype).removeprefix('torch.')}
        for memory_format, errors in worst.items():
            records.append({**case, 'format': memory_format, 'errors': errors, 'bound': bound})
    return records


def _errors(
    backend: str,
    shape: Sequence[int],
    scopes: tuple[str, ...],
    dtype: torch.dtype,
    device: torch.device,
) -> dict[str, dict[str, float]]:
    """Return the errors of one input by memory format and quantity."""
    torch.manual_seed(0)
    channels = shape[1]
    x, dy = (torch.randn(shape).to(dtype) for _ in range(2))
    sizes = (channels, channels, len(scopes), len(scopes))
    parameters = [torch.randn(size) for size in sizes]
    expected = _run('plain', [x.double(), *(p.double() for p in parameters)], dy.double(), scopes)
    errors = {}
    for name, memory_format in FORMATS.items():
        inputs = [x.contiguous(memory_format=memory_format), *parameters]
        upstream = dy.contiguous(memory_format=memory_format)
        found = _run(backend, [t.to(device) for t in inputs], upstream.to(device), scopes)
        errors[name] = {
            quantity: _relative_error(value.double().cpu(), right)
            for quantity, value, right in zip(QUANTITIES, found, expected, strict=True)
        }
    return errors


def _relative_error(value: Tensor, right: Tensor) -> float:
    """Return the largest error over the largest value; NaN counts as infinite."""
    error = (value - right).abs().max() / (right.abs().max() + 1e-3)
    return float(error.nan_to_num(nan=float('inf')))


def _run(
    backend: str, inputs: list[Tensor], dy: Tensor, scopes: tuple[str, ...]
) -> tuple[Tensor, ...]:
    inputs = [tensor.detach().requires_grad_() for tensor in inputs]
    with use_backend(backend):
        y, _ = switch_norm(*inputs, scopes=scopes, num_groups=8, correction=0, eps=1e-5)
    return y.detach(), *torch.autograd.grad(y, inputs, dy)
