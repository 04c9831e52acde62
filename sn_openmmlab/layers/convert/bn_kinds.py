"""Tell which layers are BatchNorms, which SN layer each becomes, and why others stay."""

from collections.abc import Iterable

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.utils.parametrize import is_parametrized

from sn_openmmlab.layers.convert.tally import class_name, tally
from sn_openmmlab.layers.norm_act import SwitchNormAct, SyncSwitchNormAct
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm

_MODULE = ('torch.nn.modules.module', 'Module')
_TORCHS = 'torch.nn.modules.batchnorm'
# By module and name, so that timm need not be installed; the second module is of timm before 0.8.
_TIMMS = ('timm.layers.norm_act', 'timm.models.layers.norm_act')
_BECOMES = {
    (_TORCHS, '_BatchNorm'): SwitchNorm,
    (_TORCHS, 'SyncBatchNorm'): SyncSwitchNorm,
    **{(place, 'BatchNormAct2d'): SwitchNormAct for place in _TIMMS},
    **{(place, 'SyncBatchNormAct'): SyncSwitchNormAct for place in _TIMMS},
}


def sn_class(layer: nn.Module) -> type[SwitchNorm] | None:
    """Return the SN class that computes the same as `layer` when it mixes `'bn'` alone.

    None for a layer that is not a BatchNorm, and for a BatchNorm that computes something else.
    """
    return None if reason_to_stay(layer) else _BECOMES.get(_home(layer, 'forward'))


def reason_to_stay(layer: nn.Module) -> str | None:
    """Return why a layer that normalizes with batch statistics stays as it is.

    None for a BatchNorm that can become SN, and for any layer that does not use batch statistics.
    SN and InstanceNorm may keep running statistics too, but do not count.
    """
    if isinstance(layer, _InstanceNorm):
        return None
    if not isinstance(layer, _BatchNorm):
        tensors = (*layer.named_parameters(recurse=False), *layer.named_buffers(recurse=False))
        keeps = {'running_mean', 'running_var'} <= {name for name, _ in tensors}
        return "not derived from torch's BatchNorm" if keeps else None
    if 'forward' in vars(layer) or _home(layer, 'forward') not in _BECOMES:
        return 'a forward of its own'
    # A BatchNorm that stays in evaluation mode for good has its own train.
    if 'train' in vars(layer) or _home(layer, 'train') != _MODULE:
        return 'a train of its own'
    return 'a parametrization' if is_parametrized(layer) else None


def describe_left(layers: Iterable[nn.Module]) -> str:
    """Describe how many of which class stay among `layers` and why; '' where none does."""
    reasons = ((class_name(layer), reason_to_stay(layer)) for layer in layers)
    return tally(f'{name} ({reason})' for name, reason in reasons if reason)


def _home(layer: nn.Module, method: str) -> tuple[str, str]:
    """Return module and name of the class that defines a method of `layer`."""
    owner = next(kind for kind in type(layer).__mro__ if method in vars(kind))
    return owner.__module__, owner.__name__
