"""Whether numbers are finite, asked in few calls and without waiting for the device."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from mmengine.optim import ApexOptimWrapper, OptimWrapper
from torch import Tensor, nn


def any_non_finite(tensors: Iterable[Tensor], device: torch.device, exact: bool = True) -> Tensor:
    """Return whether a number in any of the tensors is infinite or NaN.

    Args:
        tensors: of any types and devices.
        device: of the answer.
        exact: if not, the answer may also be yes for numbers that are huge; on a CPU it takes a
            seventh of the time.

    Returns:
        A bool scalar. It is not read here, so a GPU goes on.
    """
    # Both read a tensor once and write nothing. A sum of squares can overflow, a magnitude cannot.
    order = math.inf if exact else 2
    groups = [torch._foreach_norm(group, order) for group in by_kind(tensors)]
    flags = [(~torch.stack(norms).isfinite()).any().to(device) for norms in groups]
    return torch.stack(flags).any() if flags else torch.zeros((), dtype=torch.bool, device=device)


def by_kind(tensors: Iterable[Tensor]) -> list[list[Tensor]]:
    """Return the tensors that can be infinite, by device and type."""
    groups: dict[tuple, list[Tensor]] = defaultdict(list)
    for tensor in tensors:
        values = tensor.detach()
        if values.layout != torch.strided:
            values = values.coalesce().values() if values.is_sparse else values.values()
        # Torch has no norm of numbers of eight bits.
        values = values.half() if 'float8' in str(values.dtype) else values
        has_values = values.numel() and not values.is_meta
        if has_values and (values.is_floating_point() or values.is_complex()):
            groups[values.device, values.dtype].append(values)
    return list(groups.values())


def is_non_finite(tensor: Tensor) -> bool:
    """Return the same for one tensor, now."""
    return bool(any_non_finite([tensor], tensor.device))


def gradients(wrapper: OptimWrapper) -> Iterator[Tensor]:
    """Yield the gradients of a wrapper's parameters, unless they are scaled.

    A loss scale that is too large makes gradients infinite by design, and the scaler leaves such
    steps out by itself. Once it has come down to 1, it is not the reason.
    """
    if not is_scaled(wrapper):
        for group in wrapper.optimizer.param_groups:
            yield from (p.grad for p in group['params'] if p.grad is not None)


def running_statistics(model: nn.Module) -> dict[str, Tensor]:
    """Return the running statistics of all norms, by name."""
    ends = ('running_mean', 'running_var')
    return {name: buffer for name, buffer in model.named_buffers() if name.endswith(ends)}


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in nested tuples, lists and dicts."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)


def is_scaled(wrapper: OptimWrapper) -> bool:
    """Return whether an optimizer wrapper scales its losses."""
    if isinstance(wrapper, ApexOptimWrapper):
        return True
    scaler = getattr(wrapper, 'loss_scaler', None)
    return scaler is not None and scaler.is_enabled() and scaler.get_scale() > 1
