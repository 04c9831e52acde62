"""What the compiled operators return, without data: shapes, types and strides."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from sn_openmmlab.kernels.cpp.scopes import CODES
from sn_openmmlab.kernels.plain.moments import statistics_dtype


def _tables(x: Tensor, *shape: int) -> Tensor:
    return x.new_empty(shape, dtype=statistics_dtype(x.dtype))


def _observe(x: Tensor, correction: int, instance_variance: bool) -> tuple[Tensor, Tensor]:
    return _tables(x, 2, *x.shape[:2]), _tables(x, 2, x.shape[1])


def _normalize(x: Tensor, instances: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(instances)


def _sum_gradients(dy: Tensor, x: Tensor, mixed: Tensor, _: Any) -> tuple[Tensor, Tensor]:
    return torch.empty_like(mixed), mixed.new_empty(4, x.shape[1])


def _input_gradients(dy: Tensor, x: Tensor, *others: Any) -> tuple[Tensor | None, Tensor, Tensor]:
    mean_weight, var_weight, wants_x = others[6], others[7], others[-1]
    dx = torch.empty_like(x) if wants_x else None
    return dx, torch.empty_like(mean_weight), torch.empty_like(var_weight)


def _forward(x: Tensor, *others: Any) -> tuple[Tensor, Tensor, Tensor]:
    scopes: Sequence[int] = others[9]
    batch = _tables(x, 2, x.shape[1] if CODES['bn'] in scopes else 0)
    return torch.empty_like(x), _tables(x, 4, *x.shape[:2]), batch


def _backward(dy: Tensor, x: Tensor, *others: Any) -> tuple[Tensor | None, ...]:
    wanted, parameters = others[-1], (x, *others[:4])
    return tuple(
        torch.empty_like(t) if want and t is not None else None
        for t, want in zip(parameters, wanted, strict=True)
    )


def _on_one_device(fake: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse an input with data and parameters without: its output would be left unfilled."""

    @wraps(fake)
    def checked(*arguments: Any) -> Any:
        devices = {str(a.device) for a in arguments if isinstance(a, Tensor)}
        if len(devices) > 1:
            raise RuntimeError(
                f'SN got tensors on {" and ".join(sorted(devices))}: move the layer and its input '
                'to one device.'
            )
        return fake(*arguments)

    return checked


for _name, _fake in {
    'observe': _observe,
    'normalize': _normalize,
    'sum_gradients': _sum_gradients,
    'input_gradients': _input_gradients,
    'switch_norm_forward': _forward,
    'switch_norm_backward': _backward,
}.items():
    torch.library.register_fake(f'sn_openmmlab::{_name}', _on_one_device(_fake))
