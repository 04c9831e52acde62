"""Turns the SN layers of a model into SyncSN and back."""

from torch import nn
from torch.distributed import ProcessGroup

from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm, check_process_group


def convert_sync_switch_norm(
    module: nn.Module, process_group: ProcessGroup | None = None
) -> nn.Module:
    """Turn every SN layer of ``module`` into SyncSN, in place.

    The layers stay the same objects and only change their class, so that parameters, buffers,
    hooks, modes and all references to them, such as an optimizer's, hold. A SyncSN layer gets the
    new process group. Subclasses of either are left alone, since they would lose what they
    override.

    Args:
        module: any module; an SN layer itself, too.
        process_group: the processes to pool over; None for all.

    Returns:
        ``module``.

    Raises:
        TypeError: ``process_group`` is not a process group.
    """
    check_process_group(process_group)
    for layer in module.modules():
        if type(layer) in (SwitchNorm, SyncSwitchNorm):
            layer.__class__ = SyncSwitchNorm
            layer.process_group = process_group
    return module


def revert_sync_switch_norm(module: nn.Module) -> nn.Module:
    """Turn every SyncSN layer of ``module`` into SN, in place, and return ``module``.

    See :func:`convert_sync_switch_norm`, which it undoes.
    """
    for layer in module.modules():
        if type(layer) is SyncSwitchNorm:
            del layer.process_group
            layer.__class__ = SwitchNorm
    return module
