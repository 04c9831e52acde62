"""Switchable Normalization as one autograd function with an explicit backward pass.

A pass visits tensors of shape (N, C, *), two forward and two backward. Everything else computes on
tables: (N, C), or (C,) where marked.

    forward
                    instance_moments         batch_moments, all ranks
        x ────────────────────────► mean, var ────► batch mean, var (C,)
        │                               │                │
        │                               └───── mix ──────┘
        │                                       ▼
        └───────────────────────────────► centre, rstd
                          normalize             ▼
                                   y = (x - centre) · rstd · γ + β

    backward
                     gradient_sums             channel_gradients
        dy, x, centre ──────────► total, dot ─────────────────► dγ, dβ, batch gradients (C,)
                                        │                                  │ all ranks
                                        └──────── position_gradients ──────┘
                      input_gradient                      ▼
        dx = dy · rstd · γ + (x - centre) · slope + offset,    dλ, dλ′

The input and four (N, C) tables are saved for the backward pass. Where it must itself be
differentiated, it is computed by the plain expression.
"""

from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

from sn_openmmlab.kernels.contract import Kernels, Mixture, Moments
from sn_openmmlab.kernels.plain.moments import statistics_dtype
from sn_openmmlab.ops.autocast import without_autocast
from sn_openmmlab.ops.backends import obstacle
from sn_openmmlab.ops.batch import average_gradients, observe
from sn_openmmlab.ops.expression import plain_switch_norm
from sn_openmmlab.ops.instances import instance_statistics


class Settings(NamedTuple):
    """What `FusedSwitchNorm` needs besides tensors."""

    kernels: Kernels
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
        mean: of the instances, (N, C).
        var: of the instances, (N, C).
        centre: the mixed mean, (N, C).
        rstd: 1 / sqrt(mixed variance + ε), (N, C).
        batch_mean: of `'bn'`, given or observed, (C,), or None.
        batch_var: of `'bn'`, given or observed, (C,), or None.
    """

    x: Tensor
    weight: Tensor | None
    bias: Tensor | None
    mean_weight: Tensor
    var_weight: Tensor
    mean: Tensor
    var: Tensor
    centre: Tensor
    rstd: Tensor
    batch_mean: Tensor | None
    batch_var: Tensor | None

    @property
    def batch(self) -> Moments | None:
        """The moments of `'bn'`, if there are any."""
        return None if self.batch_mean is None else (self.batch_mean, self.batch_var)

    @property
    def controls(self) -> Moments:
        """λ and λ′."""
        return self.mean_weight, self.var_weight


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
    """Compute y and the fields of `BatchMoments`, which have no gradients.

    The fields are None where the moments of `'bn'` are given or not mixed.
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
        """Run the forward passes; `batch_mean` and `batch_var` are given moments, or None."""
        (passes, tables), mixture, group = settings
        samples = None
        with without_autocast(x.device):
            dtype = statistics_dtype(x.dtype)
            given = None if batch_mean is None else (batch_mean, batch_var)
            compute = partial(passes.instance_moments, dtype=dtype)
            mean, var = instance_statistics(x, mixture, given, compute, dtype)
            if len(mean) != len(x):
                mean, var = (table.expand(x.shape[:2]).contiguous() for table in (mean, var))
            if batch_mean is None and 'bn' in mixture.scopes:
                batch_mean, batch_var, samples = observe(tables.batch_moments(mean, var), x, group)
            batch = None if batch_mean is None else (batch_mean, batch_var)
            centre, rstd = tables.mix(mean, var, batch, (mean_weight, var_weight), mixture)
            scale = _scale(rstd, weight)
            y = passes.normalize(x, centre, scale, None if bias is None else bias.to(dtype))
        ctx.settings, ctx.samples = settings, samples
        ctx.save_for_backward(
            *Saved(
                x=x,
                weight=weight,
                bias=bias,
                mean_weight=mean_weight,
                var_weight=var_weight,
                mean=mean,
                var=var,
                centre=centre,
                rstd=rstd,
                batch_mean=batch_mean,
                batch_var=batch_var,
            )
        )
        if samples is None:
            return y, None, None, None
        observed = (batch_mean, batch_var, samples)
        ctx.mark_non_differentiable(*(t for t in observed if isinstance(t, Tensor)))
        return y, *observed

    @staticmethod
    def backward(ctx: Any, dy: Tensor, *_: None) -> Gradients:
        """Return the gradients, by the plain expression where they are differentiated again."""
        saved = Saved(*ctx.saved_tensors)  # once: checkpointing hands them out only once
        with without_autocast(dy.device):
            if torch.is_grad_enabled() or obstacle('aten', dy) is not None:
                return _plain_gradients(ctx, saved, dy)
            return _gradients(ctx, saved, dy)


def _gradients(ctx: Any, saved: Saved, dy: Tensor) -> Gradients:
    (passes, tables), mixture, group = ctx.settings
    total, dot = passes.gradient_sums(dy, saved.x, saved.centre)
    d_weight, d_bias, d_batch = tables.channel_gradients(total, dot, saved.rstd, saved.weight)
    depends_on_batch = ctx.samples is not None
    slope, offset, d_mean_weight, d_var_weight = tables.position_gradients(
        (total, dot),
        (saved.mean, saved.var),
        (saved.centre, saved.rstd),
        saved.batch,
        average_gradients(d_batch, ctx.samples, group) if depends_on_batch else None,
        saved.weight,
        saved.controls,
        mixture,
        max(saved.x.shape[2:].numel(), 1),
    )
    dx = None
    if ctx.needs_input_grad[0]:
        scale = _scale(saved.rstd, saved.weight)
        dx = passes.input_gradient(dy, saved.x, saved.centre, scale, slope, offset)
    return Gradients(
        dx,
        _in_type_of(saved.weight, d_weight),
        _in_type_of(saved.bias, d_bias),
        _in_type_of(saved.mean_weight, d_mean_weight),
        _in_type_of(saved.var_weight, d_var_weight),
    )


def _plain_gradients(ctx: Any, saved: Saved, dy: Tensor) -> Gradients:
    """Return the gradients as expressions of the inputs and `dy`, by the plain expression."""
    inputs = {
        'x': saved.x,
        'weight': saved.weight,
        'bias': saved.bias,
        'mean_weight': saved.mean_weight,
        'var_weight': saved.var_weight,
    }
    with torch.enable_grad():
        # Aliases: inputs that depend on each other must not see each other's gradients here.
        aliases = {name: None if t is None else t.view_as(t) for name, t in inputs.items()}
        y, _ = plain_switch_norm(
            **aliases,
            mixture=ctx.settings.mixture,
            given=saved.batch if ctx.samples is None else None,
            group=ctx.settings.group,
        )
    needs = dict(zip(Gradients._fields, ctx.needs_input_grad, strict=True))
    wanted = {name: alias for name, alias in aliases.items() if needs[name]}
    create_graph = torch.is_grad_enabled()
    found = torch.autograd.grad(y, list(wanted.values()), dy, create_graph=create_graph)
    return Gradients(**dict(zip(wanted, found, strict=True)))


def _scale(rstd: Tensor, weight: Tensor | None) -> Tensor:
    return rstd if weight is None else rstd * weight.to(rstd.dtype)


def _in_type_of(parameter: Tensor | None, gradient: Tensor) -> Tensor | None:
    return None if parameter is None else gradient.to(parameter.dtype)
