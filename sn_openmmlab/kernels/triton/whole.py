"""The op for a process alone, with as little host time as there can be.

Each direction looks up one plan, allocates its outputs and one buffer of tables, and starts the
plan's launches. Where rows are split into many short parts, forward allocates a second buffer, so
that what these found does not have to be kept for backward.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from sn_openmmlab.kernels.contract import Mixture
from sn_openmmlab.kernels.triton.launch import direct_stream
from sn_openmmlab.kernels.triton.plans import Subject, backward_plan, forward_plan


class Layer:
    """What the op needs to know of a layer besides its parameters.

    Args:
        running_mean: the moments of `'bn'` to use in place of those of the batch, or to move
            towards them, (C,), contiguous; None for neither.
        running_var: the same for the variance.
        num_batches: the number of batches, a scalar, or None.
        momentum: the share of the new value in the running statistics; None for one over the number
            of batches.
        is_given: whether the running statistics are the moments to use.
        mixture: what to mix.

    Attributes:
        tables: the buffer, once the forward pass is through.
    """

    tables: Tensor
    __slots__ = (
        'is_given',
        'mixture',
        'momentum',
        'num_batches',
        'running_mean',
        'running_var',
        'tables',
    )

    def __init__(
        self,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        num_batches: Tensor | None,
        momentum: float | None,
        is_given: bool,
        mixture: Mixture,
    ) -> None:
        self.running_mean = running_mean
        self.running_var = running_var
        self.num_batches = num_batches
        self.momentum = None if momentum is None else float(momentum)
        self.is_given = is_given
        self.mixture = mixture


def forward(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean_weight: Tensor,
    var_weight: Tensor,
    layer: Layer,
) -> tuple[Tensor, Tensor, Subject]:
    """Return the output, `tables`, and what `backward` needs to know.

    In training also move the running statistics, and count the batch.

    Args:
        x: (N, C, *), not empty.
        weight: γ, (C,), contiguous like all vectors, or None for 1.
        bias: β, (C,), or None for 0.
        mean_weight: λ; see `Forward` in `kernels/contract.py`.
        var_weight: λ′.
        layer: the rest.
    """
    mixture, is_given = layer.mixture, layer.is_given
    mean, var, count = layer.running_mean, layer.running_var, layer.num_batches
    is_alone = is_given and mixture.scopes == ('bn',)
    plan = forward_plan(
        x.shape,
        x.stride(),
        mixture,
        mean_weight.shape,
        is_given,
        is_alone,
        x.get_device(),
        x.dtype,
        None if weight is None else weight.dtype,
        None if bias is None else bias.dtype,
        mean_weight.dtype,
        var_weight.dtype,
        None if mean is None else mean.dtype,
        None if var is None else var.dtype,
        None if count is None else count.dtype,
        layer.momentum is None,
        x.data_ptr() % 16 == 0,
    )
    if plan is None:
        dense = x.contiguous()
        found, *known = forward(dense, weight, bias, mean_weight, var_weight, layer)
        return torch.empty_like(x).copy_(found), *known
    # What torch allocates starts at a multiple of 16 bytes.
    y = torch.empty_like(x)
    tables = x.new_empty(plan.tables, dtype=torch.float32)
    stream = direct_stream(x)
    if not is_alone:
        parts = x.new_empty(plan.parts, dtype=torch.float32) if plan.parts else tables
        plan.moments(stream, x, parts)
        if plan.batch is not None:
            moved = (None, None, None) if is_given else (mean, var, count)
            plan.batch(stream, tables, parts, *moved, layer.momentum)
    if is_given:
        plan.mix(stream, tables, mean, var, mean_weight, var_weight, None)
    else:
        plan.mix(stream, tables, None, None, mean_weight, var_weight, count)
    plan.normalize(stream, x, y, tables, weight, bias)
    return y, tables, plan.subject


def backward(
    dy: Tensor,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean_weight: Tensor,
    var_weight: Tensor,
    tables: Tensor,
    subject: Subject,
    wanted: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """Return the gradients of `x`, γ, β, λ and λ′, each None unless it is wanted.

    Args:
        dy: the gradient of the output, (N, C, *).
        x: the input, (N, C, *).
        weight: γ, as of `forward`, like all vectors.
        bias: β.
        mean_weight: λ.
        var_weight: λ′.
        tables: from `forward`.
        subject: from `forward`.
        wanted: for the five gradients.
    """
    wants_x, wants_weight, wants_bias, wants_mean, wants_var = wanted
    plan = backward_plan(
        subject,
        x.stride(),
        dy.stride(),
        x.dtype,
        dy.dtype,
        wants_weight,
        wants_bias,
        x.data_ptr() % 16 == 0,
        dy.data_ptr() % 16 == 0,
    )
    if plan is None:
        dense = (dy.contiguous(), x.contiguous())
        vectors = (weight, bias, mean_weight, var_weight)
        found, *others = backward(*dense, *vectors, tables, subject, wanted)
        return (None if found is None else torch.empty_like(x).copy_(found), *others)
    dx = torch.empty_like(x) if wants_x else None
    d_weight = torch.empty_like(weight) if wants_weight else None
    d_bias = torch.empty_like(bias) if wants_bias else None
    d_mean_weight = d_var_weight = None
    work = tables.new_empty(plan.work)
    stream = direct_stream(x)
    plan.sums(stream, dy, x, tables, work)
    plan.channels(stream, work, tables, weight, d_weight, d_bias)
    plan.positions(stream, work, tables, weight, mean_weight, var_weight)
    if wants_mean or wants_var:
        d_mean_weight, d_var_weight = torch.empty_like(mean_weight), torch.empty_like(var_weight)
        plan.controls(stream, work, mean_weight, var_weight, d_mean_weight, d_var_weight)
    if wants_x:
        plan.gradient(stream, dy, x, dx, tables, work, weight)
    return dx, d_weight, d_bias, d_mean_weight, d_var_weight
