"""The op of Triton kernels for a process alone: few launches, and little host time.

It does what `fused.py` does for a group, whose processes need its stages to exchange results in
between. Here the kernels also move the running statistics.
"""

from typing import Any

import torch
from torch import Tensor

from sn_openmmlab.kernels.contract import Mixture, Moments
from sn_openmmlab.kernels.triton.buffers import batch_of
from sn_openmmlab.kernels.triton.launch import check_device
from sn_openmmlab.kernels.triton.whole import Layer, backward, forward
from sn_openmmlab.ops.backends import obstacle
from sn_openmmlab.ops.gradients import expressions
from sn_openmmlab.ops.running import Running

Affine = tuple[Tensor | None, Tensor | None]

_NOTHING = (None, None, None, None)


def triton_switch_norm(
    x: Tensor,
    affine: Affine,
    controls: Moments,
    mixture: Mixture,
    running: Running | None,
    training: bool,
) -> tuple[Tensor, Tensor | None]:
    """Normalize `x`, which is not empty; see `compute_switch_norm` for the arguments.

    Returns:
        The output, and mean and variance of `'bn'`, (2, C), where it is mixed without running
            statistics.
    """
    weight, bias = affine
    mean_weight, var_weight = controls
    check_device(x, mean_weight)
    mean, var, count, momentum = running or _NOTHING
    for vector in (weight, bias, mean_weight, var_weight, mean, var):
        if vector is not None and not vector.is_contiguous():
            return _by_copies(x, affine, controls, mixture, running, training)
    is_given = running is not None and not training
    layer = Layer(mean, var, count, momentum, is_given, mixture)
    y = TritonSwitchNorm.apply(x, weight, bias, mean_weight, var_weight, layer)
    if running is not None or 'bn' not in mixture.scopes:
        return y, None
    return y, batch_of(layer.tables, x.shape)


def _by_copies(
    x: Tensor,
    affine: Affine,
    controls: Moments,
    mixture: Mixture,
    running: Running | None,
    training: bool,
) -> tuple[Tensor, Tensor | None]:
    """Do what `triton_switch_norm` does with contiguous copies of the vectors."""
    weight, bias = (None if vector is None else vector.contiguous() for vector in affine)
    mean_weight, var_weight = (control.contiguous() for control in controls)
    own = running
    if running is not None:
        own = running._replace(mean=running.mean.contiguous(), var=running.var.contiguous())
    found = triton_switch_norm(x, (weight, bias), (mean_weight, var_weight), mixture, own, training)
    if training and running is not None and own is not None:
        running.mean.copy_(own.mean)
        running.var.copy_(own.var)
    return found


class TritonSwitchNorm(torch.autograd.Function):
    """Compute y, and leave the moments of the batch in the tables of `layer`."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        mean_weight: Tensor,
        var_weight: Tensor,
        layer: Layer,
    ) -> Tensor:
        """Launch the kernels; the vectors are contiguous."""
        y, tables, subject = forward(x, weight, bias, mean_weight, var_weight, layer)
        layer.tables = tables
        ctx.save_for_backward(x, weight, bias, mean_weight, var_weight, tables)
        ctx.subject, ctx.is_given = subject, layer.is_given
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients, by the plain expression where they are differentiated again."""
        # Once: checkpointing hands them out only once.
        x, weight, bias, mean_weight, var_weight, tables = ctx.saved_tensors
        wanted = ctx.needs_input_grad[:5]
        if torch.is_grad_enabled() or obstacle('aten', dy) is not None:
            found = expressions(
                dy,
                (x, weight, bias, mean_weight, var_weight),
                wanted,
                mixture=ctx.subject.mixture,
                given=tuple(batch_of(tables, x.shape)) if ctx.is_given else None,
                group=None,
            )
        else:
            found = backward(
                dy, x, weight, bias, mean_weight, var_weight, tables, ctx.subject, wanted
            )
        return (*found, None)
