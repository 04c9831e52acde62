"""Replace the norm layers of a model by others, in place."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.utils.parametrize import is_parametrized

from sn_openmmlab.layers.convert.bn_kinds import reason_to_stay, sn_class
from sn_openmmlab.layers.convert.from_batch_norm import convert_batch_norm
from sn_openmmlab.layers.convert.ratio_groups import split_ratios
from sn_openmmlab.layers.convert.sync import convert_sync_switch_norm, revert_sync_switch_norm
from sn_openmmlab.layers.convert.turn_into import turn_into
from sn_openmmlab.layers.norm_act import SwitchNormAct, SyncSwitchNormAct
from sn_openmmlab.layers.switch_norm import SwitchNorm

_SHARED = ('weight', 'bias')


def reason_to_keep(layer: nn.Module, switchable: bool = True) -> str | None:
    """Return why a norm layer cannot be replaced; None if it can.

    BatchNorm, SyncBN, GroupNorm and SN can, with the `forward` of torch or of this package.

    Args:
        layer: a norm layer of any kind.
        switchable: whether SN is to take its place.
    """
    kind = type(layer) if isinstance(layer, SwitchNorm) else sn_class(layer)
    if kind is not None:
        with_activation = issubclass(kind, SwitchNormAct | SyncSwitchNormAct)
        return 'an activation of its own' if with_activation and not switchable else None
    if not isinstance(layer, nn.GroupNorm):
        return reason_to_stay(layer) or 'only BN, SyncBN, GN and SN are replaced'
    if type(layer).forward is not nn.GroupNorm.forward or 'forward' in vars(layer):
        return 'a forward of its own'
    return 'a parametrization' if is_parametrized(layer) else None


def channels_of(layer: nn.Module) -> int:
    """Return C of a layer that can be replaced."""
    return layer.num_channels if isinstance(layer, nn.GroupNorm) else layer.num_features


def replace_by_switch_norm(layer: nn.Module, options: Mapping[str, Any], synced: bool) -> None:
    """Turn a BatchNorm, SyncBN or GroupNorm into SN, or into SyncSN if `synced`, in place.

    γ, β, `eps`, the mode and, of a BatchNorm, `momentum` and running statistics stay. The
    importance ratios start equal. An SN layer only becomes SyncSN, or SyncSN becomes SN.

    Args:
        layer: a layer for which `reason_to_keep` gives None.
        options: of `SwitchNorm`: `scopes`, `num_groups`, `num_ratio_groups`, `correction`, `eps`,
            `momentum`, `norm_eval`.
        synced: whether it becomes SyncSN.

    Raises:
        TypeError: if an option is of the wrong type.
        ValueError: if an option is out of its range, the groups do not divide the channels, or a
            lazy BatchNorm has seen no data.
    """
    if isinstance(layer, nn.GroupNorm):
        new = SwitchNorm(layer.num_channels, **{'eps': layer.eps, **options}, affine=layer.affine)
        _become(layer, new)
    elif not isinstance(layer, SwitchNorm):
        _convert(layer, options)
    (convert_sync_switch_norm if synced else revert_sync_switch_norm)(layer)


def replace_by(layer: nn.Module, build: Callable[[int], nn.Module]) -> None:
    """Turn a layer into the norm that `build` returns for its number of channels, in place.

    γ and β stay where both have them, and running statistics where both have those.

    Args:
        layer: a layer for which `reason_to_keep` gives None.
        build: returns a new layer.
    """
    _become(layer, build(channels_of(layer)))


def _convert(layer: nn.Module, options: Mapping[str, Any]) -> None:
    scopes = tuple(options.get('scopes', SwitchNorm(1).scopes))
    # The conversion needs 'bn', in which it keeps the running statistics.
    batch = scopes if 'bn' in scopes else (*scopes, 'bn')
    settings = {name: options[name] for name in ('num_groups', 'correction') if name in options}
    convert_batch_norm(layer, scopes=batch, **settings)
    layer.scopes = scopes
    for name in ('mean_weight', 'var_weight'):
        old = getattr(layer, name)
        new = torch.ones(len(scopes), dtype=old.dtype, device=old.device)
        setattr(layer, name, nn.Parameter(new, requires_grad=old.requires_grad))
    split_ratios(layer, options.get('num_ratio_groups', 1))
    if 'bn' not in scopes:
        layer.track_running_stats = False
        for name in ('running_mean', 'running_var', 'num_batches_tracked'):
            setattr(layer, name, None)
    for name in ('eps', 'momentum', 'norm_eval'):
        setattr(layer, name, options.get(name, getattr(layer, name)))
    layer.train(layer.training)


def _become(layer: nn.Module, new: nn.Module) -> None:
    """Turn `layer` into `new`, with the tensors that both have."""
    old = {**layer._parameters, **layer._buffers}
    tensors = [tensor for tensor in old.values() if tensor is not None]
    if tensors:
        new.to(device=tensors[0].device, dtype=tensors[0].dtype)
    new.train(layer.training)
    with torch.no_grad():
        for name, tensor in {**new._parameters, **new._buffers}.items():
            if tensor is not None and old.get(name) is not None:
                tensor.copy_(old[name])
    trained = all(old[name].requires_grad for name in _SHARED if old.get(name) is not None)
    new.requires_grad_(trained)
    turn_into(layer, new)
