"""Switchable Normalization as one autograd function with an explicit backward pass.

The stages of `kernels/contract.py` do the work; between them the processes of a group exchange what
`'bn'` needs.

    forward
                  observe                          all ranks
        x ──────────────────► instances, batch ───────────────► batch
        │                         │                               │
        └──────────── normalize ──┴───────────────────────────────┘
                         ▼
                   y = (x - centre) · rstd · γ + β

    backward
                sum_gradients                                           all ranks
        dy, x ──────────────────► sums, dγ, dβ, gradients of 'bn' ───────────────────┐
        │                           │                                                │
        └────── input_gradients ────┴────────────────────────────────────────────────┘
                         ▼
                   dx = dy · rstd · γ + x · slope + shift,    dλ, dλ′

The input and four (N, C) tables are saved for the backward pass. Where it must itself be
differentiated, it is computed by the plain expression.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

from sn_openmmlab.kernels.contract import Forward, Mixture, Stages
from sn_openmmlab.kernels.plain.moments import statistics_dtype
from sn_openmmlab.ops.autocast import without_autocast
from sn_openmmlab.ops.backends import obstacle
from sn_openmmlab.ops.batch import average_gradients, observe_ranks
from sn_openmmlab.ops.gradients import expressions


class Settings(NamedTuple):
    """What `FusedSwitchNorm` needs besides tensors."""

    stages: Stages
    mixture: Mixture
    group: ProcessGroup | None


class Saved(NamedTuple):
    """The tensors that the backward pass needs.

    Attributes:
        x: the input, (N, C, *).
        weight: γ, (C,), or None.
        bias: β, (C,), or None.
        mean_weight: λ, (number of scopes,).
        var_weight: λ′, (number of scopes,).
        instances: mean and variance of the instances, (2, N, C).
        mixed: the mixed mean and 1 / sqrt(mixed variance + ε), (2, N, C).
        batch: mean and variance of `'bn'`, given or observed, (2, C), or None.
    """

    x: Tensor
    weight: Tensor | None
    bias: Tensor | None
    mean_weight: Tensor
    var_weight: Tensor
    instances: Tensor
    mixed: Tensor
    batch: Tensor | None

    @property
    def forward(self) -> Forward:
        """What the stages need to know of the forward pass."""
        controls = (self.mean_weight, self.var_weight)
        return Forward(self.instances, self.mixed, self.batch, self.weight, controls)


class Gradients(NamedTuple):
    """The gradients of the arguments of `FusedSwitchNorm`, in their order."""

    x: Tensor | None = None
    weight: Tensor | None = None
    bias: Tensor | None = None
    mean_weight: Tensor | None = None
    var_weight: Tensor | None = None
    batch_mean: None = None
    batch_var: None = None
    settings: None = None


class FusedSwitchNorm(torch.autograd.Function):
    """Compute y, the moments of `'bn'`, (2, C), and the number of samples behind them.

    The last two have no gradients, and are None where the moments are given or not mixed.
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
    ) -> tuple[Tensor, Tensor | None, int | Tensor | None]:
        """Run the forward stages; `batch_mean` and `batch_var` are given moments, or None."""
        stages, mixture, group = settings
        samples = batch = None
        with without_autocast(x.device):
            if batch_mean is not None:
                dtype = statistics_dtype(x.dtype)
                batch = torch.stack((batch_mean.to(dtype), batch_var.to(dtype)))
            if batch is not None and mixture.scopes == ('bn',):
                instances = batch.unsqueeze(1).expand(2, *x.shape[:2]).contiguous()
            else:
                wants_batch = batch is None and 'bn' in mixture.scopes
                instances, own = stages.observe(x, mixture, wants_batch)
                if wants_batch:
                    batch, samples = observe_ranks(own, x, group)
            controls = (mean_weight, var_weight)
            y, mixed = stages.normalize(x, instances, batch, (weight, bias), controls, mixture)
        ctx.settings, ctx.samples = settings, samples
        saved = Saved(x, weight, bias, mean_weight, var_weight, instances, mixed, batch)
        ctx.save_for_backward(*saved)
        if samples is None:
            return y, None, None
        ctx.mark_non_differentiable(*(t for t in (batch, samples) if isinstance(t, Tensor)))
        return y, batch, samples

    @staticmethod
    def backward(ctx: Any, dy: Tensor, *_: None) -> Gradients:
        """Return the gradients, by the plain expression where they are differentiated again."""
        saved = Saved(*ctx.saved_tensors)  # once: checkpointing hands them out only once
        with without_autocast(dy.device):
            if torch.is_grad_enabled() or obstacle('aten', dy) is not None:
                return _expressions(ctx, saved, dy)
            return _gradients(ctx, saved, dy)


def _gradients(ctx: Any, saved: Saved, dy: Tensor) -> Gradients:
    stages, mixture, group = ctx.settings
    sums, channels = stages.sum_gradients(dy, saved.x, saved.mixed, saved.weight)
    d_batch = None
    if ctx.samples is not None:
        d_batch = average_gradients(channels[2:], ctx.samples, group)
    wants_x = ctx.needs_input_grad[0]
    dx, *d_controls = stages.input_gradients(
        dy, saved.x, sums, saved.forward, d_batch, mixture, wants_x
    )
    parameters = (saved.weight, saved.bias, saved.mean_weight, saved.var_weight)
    found = (*channels[:2], *d_controls)
    return Gradients(dx, *map(_in_type_of, parameters, found))


def _expressions(ctx: Any, saved: Saved, dy: Tensor) -> Gradients:
    """Return the gradients as expressions of the inputs and `dy`."""
    found = expressions(
        dy,
        saved[:5],
        ctx.needs_input_grad[:5],
        mixture=ctx.settings.mixture,
        given=tuple(saved.batch) if ctx.samples is None and saved.batch is not None else None,
        group=ctx.settings.group,
    )
    return Gradients(*found)


def _in_type_of(parameter: Tensor | None, gradient: Tensor) -> Tensor | None:
    return None if parameter is None else gradient.to(parameter.dtype)
