"""Convert the BatchNorm layers of a model to SN layers that start from them."""

import math
import warnings
from collections.abc import Iterable, Sequence

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parallel import DistributedDataParallel

from sn_openmmlab.layers.arguments import check_batch_ratio, check_choice, check_num_features
from sn_openmmlab.layers.choice import CHOICES
from sn_openmmlab.layers.convert.bn_kinds import describe_left, sn_class
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.ops.arguments import check_groups, check_scopes

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
    """Convert every BatchNorm of `module` to SN, and every SyncBN to SyncSN, in place.

    In evaluation mode the model then computes the same as before, up to rounding and to the share
    of the other scopes. With `batch_ratio=1` the other scopes never learn a ratio: a softmax that
    is 0 passes no gradient on.

    The layers stay the same objects and only change their class. So γ, β, running statistics, eps,
    momentum, names, hooks and modes stay, and all references to the layers remain valid. Only λ and
    λ′ are new. They are trained where γ is; an optimizer that was built before lacks them.

    timm's `BatchNormAct2d` and `SyncBatchNormAct` are converted too and keep their activation.
    Layers that would lose something are left alone: a BatchNorm with its own `forward` or `train`
    or with a parametrization, and norms that do not derive from torch's BatchNorm, such as
    `FrozenBatchNorm2d`. A warning counts them by class. Another warning says so if the module has
    neither BatchNorm nor SN.

    mmcv's `efficient_conv_bn_eval`, which skips the norm in evaluation, is turned off where the
    norm was converted.

    Args:
        module: any module, which may be a BatchNorm itself.
        batch_ratio: the importance ratio at which `'bn'` starts, in (0, 1], for means and
            variances; the other scopes share the rest equally.
        scopes: which statistics to mix, among them `'bn'`; see `SwitchNorm`.
        num_groups: the number of groups of channels of `'gn'`.
        correction: 0 or 1; see `SwitchNorm`.

    Returns:
        The same `module`.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if an argument is out of its range, `scopes` lacks `'bn'`, a lazy BatchNorm has
            seen no data, or the model is wrapped in `DistributedDataParallel`. Nothing is converted
            then.

    Example:
        ```python
        model = sn_openmmlab.convert_batch_norm(model, batch_ratio=0.9)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        ```
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
    stop_folding(module, kinds)
    _warn_of_left(module, len(kinds))
    return module


def start_controls(scopes: Sequence[str], batch_ratio: float) -> list[float]:
    """Return the control parameters that give `'bn'` its ratio, in the order of `scopes`.

    The other scopes have 1, as in a new layer. Where `'bn'` is the only scope, its ratio is always
    1.

    Raises:
        TypeError: if `batch_ratio` is not a number.
        ValueError: if it is outside (0, 1], or `scopes` lacks `'bn'`.
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
    for name in CHOICES:
        layer.register_buffer(name, None)


def stop_folding(module: nn.Module, layers: Iterable[nn.Module]) -> None:
    """Make mmcv's ConvModules call these layers instead of folding them into the convolution."""
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
