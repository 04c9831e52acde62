"""The backends against the plain expression in float64, on a device."""

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
# The greatest error over the greatest value, for output and gradients.
BOUNDS = {torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 4e-2}
QUANTITIES = ('y', 'dx', 'dγ', 'dβ', 'dλ', 'dλ′')


def check_backend(backend: str, device: torch.device) -> list[dict[str, Any]]:
    """Return, by type and memory format, the worst error of each quantity over all shapes.

    Records hold ``backend``, ``dtype``, ``format``, ``errors`` by quantity, and ``bound``.
    """
    records = []
    for (dtype, bound), memory_format in product(BOUNDS.items(), FORMATS):
        worst = dict.fromkeys(QUANTITIES, 0.0)
        for shape, scopes in product(SHAPES, SCOPES):
            errors = _errors(backend, shape, scopes, dtype, FORMATS[memory_format], device)
            worst = {name: max(worst[name], errors[name]) for name in QUANTITIES}
        name = str(dtype).removeprefix('torch.')
        record = {'backend': backend, 'dtype': name, 'format': memory_format}
        records.append({**record, 'errors': worst, 'bound': bound})
    return records


def _errors(
    backend: str,
    shape: Sequence[int],
    scopes: tuple[str, ...],
    dtype: torch.dtype,
    memory_format: torch.memory_format,
    device: torch.device,
) -> dict[str, float]:
    torch.manual_seed(0)
    channels = shape[1]
    x, dy = (torch.randn(shape).to(dtype).contiguous(memory_format=memory_format) for _ in '12')
    sizes = (channels, channels, len(scopes), len(scopes))
    parameters = [torch.randn(size) for size in sizes]
    expected = _run('plain', [x.double(), *(p.double() for p in parameters)], dy.double(), scopes)
    inputs = [tensor.to(device) for tensor in (x, *parameters)]
    found = _run(backend, inputs, dy.to(device), scopes)
    return {
        name: _relative_error(value.double().cpu(), right)
        for name, value, right in zip(QUANTITIES, found, expected, strict=True)
    }


def _relative_error(value: Tensor, right: Tensor) -> float:
    """The greatest error over the greatest value; infinite for what is not a number."""
    error = (value - right).abs().max() / (right.abs().max() + 1e-3)
    return float(error.nan_to_num(nan=float('inf')))


def _run(
    backend: str, inputs: list[Tensor], dy: Tensor, scopes: tuple[str, ...]
) -> tuple[Tensor, ...]:
    inputs = [tensor.detach().requires_grad_() for tensor in inputs]
    with use_backend(backend):
        y, _ = switch_norm(*inputs, scopes=scopes, num_groups=8, correction=0, eps=1e-5)
    return y.detach(), *torch.autograd.grad(y, inputs, dy)
