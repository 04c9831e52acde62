"""The stages of the fused op; see `kernels/contract.py` for arguments and results."""

import torch
from torch import Tensor

from sn_openmmlab.kernels.contract import Forward, Mixture, Moments
from sn_openmmlab.kernels.cpp.scopes import codes

_ops = torch.ops.sn_openmmlab


def observe(x: Tensor, mixture: Mixture, wants_batch: bool) -> tuple[Tensor, Tensor | None]:
    """Return `instances` and `batch`."""
    instances, batch = _ops.observe(x, mixture.correction, mixture.instance_variance)
    return instances, batch if wants_batch else None


def normalize(
    x: Tensor,
    instances: Tensor,
    batch: Tensor | None,
    affine: tuple[Tensor | None, Tensor | None],
    controls: Moments,
    mixture: Mixture,
) -> tuple[Tensor, Tensor]:
    """Return the output and `mixed`."""
    scopes = codes(mixture.scopes)
    return _ops.normalize(
        x, instances, batch, *affine, *controls, scopes, mixture.num_groups, mixture.eps
    )


def sum_gradients(
    dy: Tensor, x: Tensor, mixed: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return `sums`, and what they say of the channels."""
    return _ops.sum_gradients(dy, x, mixed, weight)


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
    return _ops.input_gradients(
        dy,
        x,
        sums,
        forward.instances,
        forward.mixed,
        forward.batch,
        batch_gradients,
        forward.weight,
        *forward.controls,
        codes(mixture.scopes),
        mixture.num_groups,
        mixture.correction,
        wants_x,
    )
