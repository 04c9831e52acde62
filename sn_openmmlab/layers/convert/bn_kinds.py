"""Which layers are BatchNorms, which SN layer each becomes, and why another stays what it is."""

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
# By module and name, so that timm need not be there; the second place is that of timm before 0.8.
_TIMMS = ('timm.layers.norm_act', 'timm.models.layers.norm_act')
_BECOMES = {
    (_TORCHS, '_BatchNorm'): SwitchNorm,
    (_TORCHS, 'SyncBatchNorm'): SyncSwitchNorm,
    **{(place, 'BatchNormAct2d'): SwitchNormAct for place in _TIMMS},
    **{(place, 'SyncBatchNormAct'): SyncSwitchNormAct for place in _TIMMS},
}


def sn_class(layer: nn.Module) -> type[SwitchNorm] | None:
    """Return the class that computes as ``layer`` does where ``'bn'`` is alone in the mix.

    None where there is none: for what is no BatchNorm, and for one that computes otherwise.
    """
    return None if reason_to_stay(layer) else _BECOMES.get(_home(layer, 'forward'))


def reason_to_stay(layer: nn.Module) -> str | None:
    """Return why a layer that normalizes with batch statistics stays what it is.

    None for a BatchNorm that can become SN, and for what does not normalize so. SN and
    InstanceNorm, which may keep running statistics too, do not count.
    """
    if isinstance(layer, _InstanceNorm):
        return None
    if not isinstance(layer, _BatchNorm):
        tensors = (*layer.named_parameters(recurse=False), *layer.named_buffers(recurse=False))
        keeps = {'running_mean', 'running_var'} <= {name for name, _ in tensors}
        return "not derived from torch's BatchNorm" if keeps else None
    if 'forward' in vars(layer) or _home(layer, 'forward') not in _BECOMES:
        return 'a forward of its own'
    # As one that stays in evaluation for good has it.
    if 'train' in vars(layer) or _home(layer, 'train') != _MODULE:
        return 'a train of its own'
    return 'a parametrization' if is_parametrized(layer) else None


def describe_left(layers: Iterable[nn.Module]) -> str:
    """Say how many of which class stay among ``layers`` and why; '' where none does."""
    reasons = ((class_name(layer), reason_to_stay(layer)) for layer in layers)
    return tally(f'{name} ({reason})' for name, reason in reasons if reason)


def _home(layer: nn.Module, method: str) -> tuple[str, str]:
    """Return module and name of the class that ``layer`` has a method from."""
    owner = next(kind for kind in type(layer).__mro__ if method in vars(kind))
    return owner.__module__, owner.__name__
