"""The four stages for a group of processes; see `kernels/contract.py` for arguments and results.

They start the kernels of `whole.py`, and pack the tables of the contract into its buffers.
"""

import torch
from torch import Tensor

from sn_openmmlab.kernels.contract import Forward, Mixture, Moments
from sn_openmmlab.kernels.triton.buffers import batch_of, instances_of, mixed_of
from sn_openmmlab.kernels.triton.launch import check_device, direct_stream
from sn_openmmlab.kernels.triton.plans import (
    BackwardPlan,
    ForwardPlan,
    Subject,
    backward_plan,
    forward_plan,
)

# Sums do not depend on what is mixed.
_ANY_MIXTURE = Mixture(('in',), 1, 0, 0.0)


def observe(x: Tensor, mixture: Mixture, wants_batch: bool) -> tuple[Tensor, Tensor | None]:
    """Return `instances` and `batch`."""
    x, plan = _planned(x, mixture, (len(mixture.scopes),), not wants_batch)
    tables, stream = _floats(x, plan.tables), direct_stream(x)
    parts = _floats(x, plan.parts) if plan.parts else tables
    plan.moments(stream, x, parts)
    if plan.batch is not None:
        plan.batch(stream, tables, parts, None, None, None, None)
    instances = instances_of(tables, x.shape)
    return instances, batch_of(tables, x.shape) if wants_batch else None


def normalize(
    x: Tensor,
    instances: Tensor,
    batch: Tensor | None,
    affine: tuple[Tensor | None, Tensor | None],
    controls: Moments,
    mixture: Mixture,
) -> tuple[Tensor, Tensor]:
    """Return the output and `mixed`."""
    check_device(x, controls[0])
    given = (None, None) if batch is None else (batch[0], batch[1])
    vectors = [_contiguous(vector) for vector in (*affine, *controls, *given)]
    dense, plan = _planned(x, mixture, controls[0].shape, batch is not None, *vectors)
    y, tables, stream = torch.empty_like(dense), _floats(x, plan.tables), direct_stream(x)
    instances_of(tables, x.shape).copy_(instances)
    weight, bias, mean_weight, var_weight, *given = vectors
    plan.mix(stream, tables, *given, mean_weight, var_weight, None)
    plan.normalize(stream, dense, y, tables, weight, bias)
    return y if dense is x else torch.empty_like(x).copy_(y), mixed_of(tables, x.shape)


def sum_gradients(
    dy: Tensor, x: Tensor, mixed: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return `sums`, and what they say of the channels."""
    samples, channels = x.shape[:2]
    weight = _contiguous(weight)
    subject = Subject(x.shape, _ANY_MIXTURE, (1,), True, 1.0, _key(weight))
    dy, x, plan = _planned_backward(dy, x, subject)
    work, stream = _floats(x, plan.work), direct_stream(x)
    of_channels = _floats(x, 4 * channels).view(4, channels)
    # The buffer of tables starts with the mixed ones, and these launches need no others.
    tables = mixed.contiguous()
    plan.sums(stream, dy, x, tables, work)
    plan.channels(stream, work, tables, weight, of_channels[0], of_channels[1])
    at = 4 * samples * channels
    of_channels[2:] = work[at : at + 2 * channels].view(2, channels)
    return work[: 2 * samples * channels].view(2, samples, channels), of_channels


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
    entries, channels = sums[0].numel(), x.shape[1]
    vectors = [_contiguous(vector) for vector in (forward.weight, *forward.controls)]
    moves = batch_gradients is not None
    control_shape = forward.controls[0].shape
    subject = Subject(x.shape, mixture, control_shape, moves, 1.0, _key(*vectors))
    dense_dy, dense, plan = _planned_backward(dy, x, subject)
    work, stream = _floats(x, plan.work), direct_stream(x)
    work[: 2 * entries] = sums.flatten()
    if batch_gradients is not None:
        work[4 * entries : 4 * entries + 2 * channels] = batch_gradients.flatten()
    batch = _floats(x, 2 * channels) if forward.batch is None else forward.batch.to(work.dtype)
    tables = torch.cat([t.flatten() for t in (forward.mixed, forward.instances, batch)])
    weight, *controls = vectors
    d_controls = [_floats(x, control.numel()).view(control.shape) for control in controls]
    plan.positions(stream, work, tables, weight, *controls)
    plan.controls(stream, work, *controls, *d_controls)
    dx = None
    if wants_x:
        dx = torch.empty_like(dense)
        plan.gradient(stream, dense_dy, dense, dx, tables, work, weight)
        dx = dx if dense is x else torch.empty_like(x).copy_(dx)
    return dx, *d_controls


def _planned(
    x: Tensor,
    mixture: Mixture,
    control_shape: tuple[int, ...],
    is_given: bool,
    *vectors: Tensor | None,
) -> tuple[Tensor, ForwardPlan]:
    """Return the input, copied where it has to be, and its plan."""
    plan = forward_plan(
        x.shape, x.stride(), mixture, control_shape, is_given, False, *_key(x, *vectors)
    )
    if plan is None:
        return _planned(x.contiguous(), mixture, control_shape, is_given, *vectors)
    return x, plan


def _planned_backward(
    dy: Tensor, x: Tensor, subject: Subject
) -> tuple[Tensor, Tensor, BackwardPlan]:
    plan = backward_plan(subject, x.stride(), dy.stride(), *_key(x), *_key(dy))
    if plan is None:
        return _planned_backward(dy.contiguous(), x.contiguous(), subject)
    return dy, x, plan


def _key(*tensors: Tensor | None) -> tuple[object, ...]:
    return tuple(
        None if t is None else (t.get_device(), t.dtype, t.data_ptr() % 16 == 0) for t in tensors
    )


def _contiguous(vector: Tensor | None) -> Tensor | None:
    return None if vector is None else vector.contiguous()


def _floats(x: Tensor, size: int) -> Tensor:
    return x.new_empty(size, dtype=torch.float32)
