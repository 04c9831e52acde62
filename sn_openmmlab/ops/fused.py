"""Switchable Normalization as one autograd function with an explicit backward pass.

The input is visited twice forward and, with the gradient of the output, twice backward; between
lies arithmetic on (N, C) tables. The input and four such tables are saved for backward.
"""

from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

from sn_openmmlab.kernels.contract import Mixture
from sn_openmmlab.kernels.plain.moments import statistics_dtype
from sn_openmmlab.ops.autocast import without_autocast
from sn_openmmlab.ops.backends import obstacle
from sn_openmmlab.ops.batch import BatchMoments, average_gradients, count_samples, merge_ranks
from sn_openmmlab.ops.expression import plain_switch_norm

Moments = tuple[Tensor, Tensor]
INPUTS = 7


class Kernels(NamedTuple):
    """One way to run the passes over the big tensors and the arithmetic on the tables."""

    passes: ModuleType
    tables: ModuleType


class Settings(NamedTuple):
    """What :class:`FusedSwitchNorm` needs besides tensors."""

    kernels: Kernels
    mixture: Mixture
    correction: int
    group: ProcessGroup | None


class FusedSwitchNorm(torch.autograd.Function):
    """``(x, γ, β, λ, λ′, given batch mean, given batch variance, settings) → (y, *observed)``.

    What was observed are the fields of :class:`~sn_openmmlab.ops.batch.BatchMoments`, without
    gradients; None where the moments were given or no scope needs them.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        mean_weight: Tensor,
        var_weight: Tensor,
        batch_mean: Tensor | None,
        batch_var: Tensor | None,
        settings: Settings,
    ) -> tuple[Tensor, Tensor | None, Tensor | None, int | Tensor | None]:
        passes, tables = settings.kernels
        controls = (mean_weight, var_weight)
        with without_autocast(x.device):
            dtype = statistics_dtype(x.dtype)
            instances = passes.instance_moments(x, settings.correction, dtype)
            batch = BatchMoments(batch_mean, batch_var, None)
            if batch_mean is None and 'bn' in settings.mixture.scopes:
                batch = _observe(x, instances, settings)
            centre, rstd = tables.mix(*instances, batch[:2], controls, settings.mixture)
            scale = _scale(rstd, weight)
            y = passes.normalize(x, centre, scale, None if bias is None else bias.to(dtype))
        ctx.settings, ctx.samples = settings, batch.samples
        inputs = (x, weight, bias, *controls, batch_mean, batch_var)
        ctx.save_for_backward(*inputs, *instances, centre, rstd, *batch[:2])
        if batch.samples is None:
            return y, None, None, None
        ctx.mark_non_differentiable(*(t for t in batch if isinstance(t, Tensor)))
        return y, *batch

    @staticmethod
    def backward(ctx: Any, dy: Tensor, *_: None) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors  # once: checkpointing hands them out only once
        inputs, tables = saved[:INPUTS], saved[INPUTS:]
        with without_autocast(dy.device):
            if torch.is_grad_enabled() or obstacle('aten', dy) is not None:
                gradients = _plain_gradients(ctx, inputs, dy)
            else:
                gradients = _gradients(ctx, inputs, tables, dy)
        return *gradients, None, None, None


def _observe(x: Tensor, instances: Moments, settings: Settings) -> BatchMoments:
    own = settings.kernels.tables.batch_moments(*instances)
    observed = BatchMoments(*own, count_samples(x))
    if settings.group is None:
        return observed
    return merge_ranks(observed, settings.group, anchor=None)


def _gradients(
    ctx: Any, inputs: tuple[Tensor | None, ...], saved: tuple[Tensor, ...], dy: Tensor
) -> list[Tensor | None]:
    x, weight, _, *controls = inputs[:5]
    mean, var, centre, rstd, *batch = saved
    kernels, mixture, correction, group = ctx.settings
    sums = kernels.passes.gradient_sums(dy, x, centre)
    d_weight, d_bias, d_batch = kernels.tables.channel_gradients(*sums, rstd, weight)
    if ctx.samples is not None:
        d_batch = average_gradients(d_batch, ctx.samples, group)
    slope, offset, *d_controls = kernels.tables.position_gradients(
        sums,
        (mean, var),
        (centre, rstd),
        batch,
        None if ctx.samples is None else d_batch,
        weight,
        controls,
        mixture,
        (max(x.shape[2:].numel(), 1), correction),
    )
    dx = None
    if ctx.needs_input_grad[0]:
        scale = _scale(rstd, weight)
        dx = kernels.passes.input_gradient(dy, x, centre, scale, slope, offset)
    d_parameters = (d_weight, d_bias, *d_controls)
    return [dx] + [
        None if parameter is None else d.to(parameter.dtype)
        for d, parameter in zip(d_parameters, inputs[1:5], strict=True)
    ]


def _plain_gradients(
    ctx: Any, inputs: tuple[Tensor | None, ...], dy: Tensor
) -> list[Tensor | None]:
    """The gradients as expressions of the inputs and ``dy``, by way of the plain expression."""
    given = inputs[5:] if inputs[5] is not None else None
    with torch.enable_grad():
        # Aliases: inputs that depend on each other must not see each other's gradients here.
        aliases = [None if t is None else t.view_as(t) for t in inputs[:5]]
        y, _ = plain_switch_norm(
            *aliases,
            mixture=ctx.settings.mixture,
            correction=ctx.settings.correction,
            batch_moments=given,
            group=ctx.settings.group,
        )
    wanted = [i for i in range(5) if ctx.needs_input_grad[i]]
    create_graph = torch.is_grad_enabled()
    found = torch.autograd.grad(y, [aliases[i] for i in wanted], dy, create_graph=create_graph)
    gradients = dict(zip(wanted, found, strict=True))
    return [gradients.get(i) for i in range(5)]


def _scale(rstd: Tensor, weight: Tensor | None) -> Tensor:
    return rstd if weight is None else rstd * weight.to(rstd.dtype)
