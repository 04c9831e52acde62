"""Turns the BatchNorm layers of a model into Switchable Normalization that starts from them."""

import math
from collections.abc import Iterable, Sequence

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.utils.parametrize import is_parametrized

from sn_openmmlab.layers.arguments import (
    check_batch_ratio,
    check_choice,
    check_groups,
    check_num_features,
    check_scopes,
)
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm

BATCH_RATIO = 0.9

# exp(-128) is 0 in float32, and 1 + 128 is exact in bfloat16.
_LARGEST = 128.0


def convert_batch_norm(
    module: nn.Module,
    batch_ratio: float = BATCH_RATIO,
    scopes: Sequence[str] = ('in', 'ln', 'bn'),
    num_groups: int = 32,
    correction: int = 0,
) -> nn.Module:
    """Turn every BatchNorm of ``module`` into SN, in place, and every SyncBN into SyncSN.

    In evaluation the model then computes what it computed, up to the share that the other scopes
    get, and to rounding; at ``batch_ratio=1`` the others learn no ratio either, since a softmax
    that is 0 passes no gradient on.

    The layers stay the same objects and only change their class, so that γ, β, the running
    statistics, eps, momentum, names, hooks, modes and all references to them hold. New are λ and
    λ′, which train where γ does; an optimizer built before lacks them. Subclasses with a
    ``forward`` of their own and layers with a parametrization are left alone, since they would
    lose it. mmcv's ``efficient_conv_bn_eval``, which skips the norm in evaluation, is turned off
    where the norm was converted.

    Args:
        module: any module; a BatchNorm itself, too.
        batch_ratio: the importance ratio at which ``'bn'`` starts, in (0, 1], of means and of
            variances; the other scopes share the rest equally.
        scopes: as of ``SwitchNorm``, with ``'bn'``.
        num_groups: likewise.
        correction: likewise.

    Returns:
        ``module``.

    Raises:
        TypeError: an argument is of the wrong type.
        ValueError: ``batch_ratio`` is outside (0, 1], ``scopes`` lacks ``'bn'``, a lazy BatchNorm
            has seen no data, or see ``SwitchNorm``. Then nothing was converted.
    """
    scopes = check_scopes(scopes)
    controls = start_controls(scopes, batch_ratio)
    check_choice('correction', correction, (0, 1))
    layers = [layer for layer in module.modules() if _is_batch_norm(layer)]
    for layer in layers:
        _check_seen_data(layer)
        check_num_features(layer.num_features)
        check_groups(num_groups, layer.num_features, scopes)
    for layer in layers:
        synced = isinstance(layer, nn.SyncBatchNorm)
        layer.__class__ = SyncSwitchNorm if synced else SwitchNorm
        layer.scopes, layer.num_groups, layer.correction = scopes, num_groups, correction
        _add_controls(layer, controls)
    _stop_folding(module, layers)
    return module


def start_controls(scopes: Sequence[str], batch_ratio: float) -> list[float]:
    """Return the control parameters that give ``'bn'`` its ratio, in the order of ``scopes``.

    All others have the value that they have in a new layer, 1. Where ``'bn'`` is alone, its ratio
    is 1 whatever is asked for.

    Raises:
        TypeError: ``batch_ratio`` is not a number.
        ValueError: it is outside (0, 1], or ``scopes`` lacks ``'bn'``.
    """
    check_batch_ratio(batch_ratio)
    if 'bn' not in scopes:
        raise ValueError(
            f"scopes {tuple(scopes)} lacks 'bn', which takes over the running statistics of "
            "BatchNorm: add 'bn' to scopes."
        )
    others = len(scopes) - 1
    gap = 0.0
    if others and batch_ratio < 1:
        gap = min(math.log(others) + math.log(batch_ratio) - math.log1p(-batch_ratio), _LARGEST)
    elif others:
        gap = _LARGEST
    return [1 + gap if scope == 'bn' else 1.0 for scope in scopes]


def _is_batch_norm(layer: nn.Module) -> bool:
    forwards = (_BatchNorm.forward, nn.SyncBatchNorm.forward)
    known = isinstance(layer, _BatchNorm) and type(layer).forward in forwards
    return known and not is_parametrized(layer)


def _check_seen_data(layer: _BatchNorm) -> None:
    if isinstance(layer, LazyModuleMixin):
        raise ValueError(
            f'a {type(layer).__name__} has seen no data and so has no channels yet: run the model '
            'once before its conversion.'
        )


def _add_controls(layer: SwitchNorm, controls: Sequence[float]) -> None:
    tensors = [*layer.parameters(recurse=False), *layer.buffers(recurse=False)]
    like = next((tensor for tensor in tensors if tensor.is_floating_point()), torch.empty(0))
    trained = layer.weight is None or layer.weight.requires_grad
    for name in ('mean_weight', 'var_weight'):
        control = torch.tensor(controls, dtype=like.dtype, device=like.device)
        layer.register_parameter(name, nn.Parameter(control, requires_grad=trained))


def _stop_folding(module: nn.Module, layers: Iterable[nn.Module]) -> None:
    """Let mmcv's ConvModules call these layers, which some fold into the convolution."""
    converted = set(layers)
    for part in module.modules():
        switch = getattr(part, 'turn_on_efficient_conv_bn_eval', None)
        if switch and not converted.isdisjoint(part.children()):
            switch(False)
