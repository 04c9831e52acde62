"""The passes over the big tensors, a few ATen calls each.

Tables are (N, C), in the statistics' type.
"""

import torch
from torch import Tensor


def instance_moments(x: Tensor, correction: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return mean and variance of each channel of each sample: the first line of Eq. 4."""
    positions = tuple(range(2, x.dim()))
    count = x.shape[2:].numel()
    values = x.to(dtype)
    if not positions or count == 0:
        mean = values.clone() if not positions else values.new_zeros(x.shape[:2])
        return mean, torch.zeros_like(mean)
    mean = values.mean(positions, keepdim=True)
    # The sum behind a mean is rounded; a second mean, of the small distances, removes the error.
    distance = values - mean
    rest = distance.mean(positions, keepdim=True)
    square = distance.sub_(rest).square_().sum(positions)
    return (mean + rest).flatten(1), square.div_(max(count - correction, 1))


def normalize(x: Tensor, centre: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
    """Return `(x - centre) * scale + bias`, where `bias` is (C,)."""
    y = torch.empty_like(x, dtype=centre.dtype)
    torch.sub(x, _like(centre, x), out=y)
    y.mul_(_like(scale, x))
    if bias is not None:
        y.add_(_like(bias.unsqueeze(0), x))
    return y.to(x.dtype)


def gradient_sums(dy: Tensor, x: Tensor, centre: Tensor) -> tuple[Tensor, Tensor]:
    """Return `Σ dy` and `Σ dy·(x - centre)` over the positions."""
    positions = tuple(range(2, x.dim()))
    product = (x - _like(centre, x)).mul_(dy)
    if not positions:
        return dy.to(centre.dtype, copy=True), product
    return dy.sum(positions, dtype=centre.dtype), product.sum(positions)


def input_gradient(dy: Tensor, x: Tensor, scale: Tensor, slope: Tensor, shift: Tensor) -> Tensor:
    """Return `dy * scale + x * slope + shift`."""
    dx = torch.empty_like(x, dtype=scale.dtype)
    torch.mul(x, _like(slope, x), out=dx)
    dx.add_(_like(shift, x)).add_(dy * _like(scale, x))
    return dx.to(x.dtype)


def _like(table: Tensor, x: Tensor) -> Tensor:
    return table.reshape(*table.shape, *[1] * (x.dim() - 2))
