"""The stages of the fused op; see `kernels/contract.py` for arguments and results."""

import torch
from torch import Tensor

from sn_openmmlab.kernels.aten import passes, tables
from sn_openmmlab.kernels.contract import Forward, Mixture, Moments
from sn_openmmlab.kernels.plain.moments import statistics_dtype


def observe(x: Tensor, mixture: Mixture, wants_batch: bool) -> tuple[Tensor, Tensor | None]:
    """Return `instances` and `batch`."""
    moments = passes.instance_moments(x, mixture.correction, statistics_dtype(x.dtype))
    instances = torch.stack(moments)
    if not mixture.instance_variance:
        instances[1].zero_()
    return instances, tables.batch_moments(instances) if wants_batch else None


def normalize(
    x: Tensor,
    instances: Tensor,
    batch: Tensor | None,
    affine: tuple[Tensor | None, Tensor | None],
    controls: Moments,
    mixture: Mixture,
) -> tuple[Tensor, Tensor]:
    """Return the output and `mixed`."""
    weight, bias = affine
    mixed = tables.mix(instances, batch, controls, mixture)
    bias = None if bias is None else bias.to(mixed.dtype)
    return passes.normalize(x, mixed[0], _scale(mixed, weight), bias), mixed


def sum_gradients(
    dy: Tensor, x: Tensor, mixed: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return `sums`, and what they say of the channels."""
    sums = torch.stack(passes.gradient_sums(dy, x, mixed[0]))
    return sums, tables.channel_gradients(sums, mixed, weight)


def input_gradients(
    dy: Tensor,
    x: Tensor,
    sums: Tensor,
    forward: Forward,
    batch_gradients: Tensor | None,
    mixture: Mixture,
    wants_x: bool,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Return the gradients of `x`, λ and λ′."""
    positions = max(x.shape[2:].numel(), 1)
    slope, shift, *d_controls = tables.position_gradients(
        sums, forward, batch_gradients, mixture, positions
    )
    dx = None
    if wants_x:
        dx = passes.input_gradient(dy, x, _scale(forward.mixed, forward.weight), slope, shift)
    return dx, *d_controls


def _scale(mixed: Tensor, weight: Tensor | None) -> Tensor:
    return mixed[1] if weight is None else mixed[1] * weight.to(mixed.dtype)
