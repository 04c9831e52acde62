"""Turns the BatchNorm layers of a model into Switchable Normalization that starts from them."""

import math
import warnings
from collections.abc import Iterable, Sequence

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parallel import DistributedDataParallel

from sn_openmmlab.layers.arguments import (
    check_batch_ratio,
    check_choice,
    check_groups,
    check_num_features,
    check_scopes,
)
from sn_openmmlab.layers.convert.bn_kinds import describe_left, sn_class
from sn_openmmlab.layers.switch_norm import SwitchNorm

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
    λ′, which train where γ does; an optimizer built before lacks them. mmcv's
    ``efficient_conv_bn_eval``, which skips the norm in evaluation, is turned off where the norm was
    converted.

    timm's ``BatchNormAct2d`` and ``SyncBatchNormAct`` are converted too and keep their activation.
    What would lose something stays as it is: a BatchNorm with a ``forward`` or ``train`` of its
    own or with a parametrization, and what does not derive from torch's BatchNorm, such as a
    ``FrozenBatchNorm2d``. One warning counts these by class; one says so where the module has no
    BatchNorm at all, nor SN.

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
            has seen no data, the model is wrapped in ``DistributedDataParallel``, or see
            ``SwitchNorm``. Then nothing was converted.
    """
    _check_bare(module)
    scopes = check_scopes(scopes)
    controls = start_controls(scopes, batch_ratio)
    check_choice('correction', correction, (0, 1))
    kinds = {layer: kind for layer in module.modules() if (kind := sn_class(layer))}
    for layer in kinds:
        _check_seen_data(layer)
        check_num_features(layer.num_features)
        check_groups(num_groups, layer.num_features, scopes)
    for layer, kind in kinds.items():
        layer.__class__ = kind
        layer.scopes, layer.num_groups, layer.correction = scopes, num_groups, correction
        _add_controls(layer, controls)
    _stop_folding(module, kinds)
    _warn_of_left(module, len(kinds))
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


def _check_bare(module: nn.Module) -> None:
    if any(isinstance(part, DistributedDataParallel) for part in module.modules()):
        raise ValueError(
            'the model is wrapped in DistributedDataParallel, which would not share the gradients '
            'of the new control parameters: convert the model before it is wrapped.'
        )


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


def _warn_of_left(module: nn.Module, converted: int) -> None:
    left = describe_left(module.modules())
    if left:
        count = str(converted) if converted else 'nothing'
        message = (
            f'convert_batch_norm turned {count} into SN and left {left}: put '
            "torch's BatchNorm in their places before the conversion if they are to be SN."
        )
    elif any(isinstance(layer, SwitchNorm) for layer in module.modules()):
        return
    else:
        message = (
            f'convert_batch_norm found no BatchNorm in {type(module).__name__}: nothing became SN.'
        )
    warnings.warn(message, stacklevel=3)
