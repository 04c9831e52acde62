"""Convert the SN layers of a model to SyncSN and back."""

import warnings
from collections.abc import Collection

from torch import nn
from torch.distributed import ProcessGroup

from sn_openmmlab.layers.convert.tally import class_name, tally
from sn_openmmlab.layers.norm_act import SwitchNormAct, SyncSwitchNormAct
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm, check_process_group

_SYNCED = {SwitchNorm: SyncSwitchNorm, SwitchNormAct: SyncSwitchNormAct}
_REVERTED = {synced: plain for plain, synced in _SYNCED.items()}


def convert_sync_switch_norm(
    module: nn.Module, process_group: ProcessGroup | None = None
) -> nn.Module:
    """Convert every SN layer of `module` to SyncSN, in place.

    The layers stay the same objects and only change their class. So their parameters, buffers,
    hooks and modes stay, and all references to them, such as an optimizer's, remain valid. A SyncSN
    layer gets the new process group.

    Subclasses from outside this package are left alone, since they would lose what they override;
    a warning counts them by class. Another warning says so if there is no SN layer.

    Args:
        module: any module, which may be an SN layer itself.
        process_group: the processes to pool over; None for all.

    Returns:
        The same `module`.

    Raises:
        TypeError: if `process_group` is not a process group.

    Example:
        ```python
        model = sn_openmmlab.convert_sync_switch_norm(model)
        model = torch.nn.parallel.DistributedDataParallel(model)
        ```
    """
    check_process_group(process_group)
    layers = [layer for layer in module.modules() if isinstance(layer, SwitchNorm)]
    if not layers:
        warnings.warn(
            f'convert_sync_switch_norm found no SN in {type(module).__name__}: nothing changed.',
            stacklevel=2,
        )
    for layer in layers:
        if type(layer) in _SYNCED:
            layer.__class__ = _SYNCED[type(layer)]
        if type(layer) in _REVERTED:
            layer.process_group = process_group
    _warn_of_left('convert_sync_switch_norm', layers, _REVERTED)
    return module


def revert_sync_switch_norm(module: nn.Module) -> nn.Module:
    """Convert every SyncSN layer of `module` to SN, in place.

    It undoes `convert_sync_switch_norm`: see there.

    Args:
        module: any module, which may be a SyncSN layer itself.

    Returns:
        The same `module`.
    """
    layers = [layer for layer in module.modules() if isinstance(layer, SyncSwitchNorm)]
    for layer in layers:
        if type(layer) in _REVERTED:
            del layer.process_group
            layer.__class__ = _REVERTED[type(layer)]
    _warn_of_left('revert_sync_switch_norm', layers, _SYNCED)
    return module


def _warn_of_left(function: str, layers: Collection[nn.Module], done: Collection[type]) -> None:
    left = tally(class_name(layer) for layer in layers if type(layer) not in done)
    if left:
        warnings.warn(
            f'{function} left {left}, which would lose what they override: change such layers by '
            'hand.',
            stacklevel=3,
        )
