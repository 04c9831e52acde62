"""The stages of the fused op; see `kernels/contract.py` for arguments and results."""

from torch import Tensor

from sn_openmmlab.kernels.contract import Forward, Mixture, Moments
from sn_openmmlab.kernels.plain.moments import statistics_dtype
from sn_openmmlab.kernels.triton import passes, tables


def observe(x: Tensor, mixture: Mixture, wants_batch: bool) -> tuple[Tensor, Tensor | None]:
    """Return `instances` and `batch`."""
    instances = passes.instance_moments(x, mixture.correction, statistics_dtype(x.dtype))
    if not mixture.instance_variance:
        instances[1].zero_()
    return instances, tables.batch_moments(*instances) if wants_batch else None


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
    mixed = tables.mix(*instances, batch, controls, mixture)
    centre, rstd = mixed
    bias = None if bias is None else bias.to(mixed.dtype)
    return passes.normalize(x, centre, _scale(rstd, weight), bias), mixed


def sum_gradients(
    dy: Tensor, x: Tensor, mixed: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return `sums`, and what they say of the channels."""
    sums = passes.gradient_sums(dy, x, mixed[0])
    return sums, tables.channel_gradients(*sums, mixed[1], weight)


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
    slope, offset, *d_controls = tables.position_gradients(
        sums,
        forward.instances,
        forward.mixed,
        forward.batch,
        batch_gradients,
        forward.weight,
        forward.controls,
        mixture,
        max(x.shape[2:].numel(), 1),
    )
    dx = None
    if wants_x:
        centre, rstd = forward.mixed
        dx = passes.input_gradient(dy, x, centre, _scale(rstd, forward.weight), slope, offset)
    return dx, *d_controls


def _scale(rstd: Tensor, weight: Tensor | None) -> Tensor:
    return rstd if weight is None else rstd * weight.to(rstd.dtype)
