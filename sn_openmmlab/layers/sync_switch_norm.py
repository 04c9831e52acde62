"""The Switchable Normalization layer whose batch is that of several processes."""

import copy
from typing import Any

import torch.distributed as dist
from torch.distributed import ProcessGroup

from sn_openmmlab.layers.switch_norm import SwitchNorm


class SyncSwitchNorm(SwitchNorm):
    """Switchable Normalization that pools ``'bn'`` over the batches of several processes.

    It pools in training only, and only where the process group is initialized and has more than
    one rank: as :class:`torch.nn.SyncBatchNorm` does, but on the CPU too. Anywhere else it is
    :class:`~sn_openmmlab.layers.switch_norm.SwitchNorm`, whose arguments, parameters, buffers and
    checkpoints it shares.

    Every sample weighs the same, whatever its rank and however many positions it has there: ranks
    may hold batches of different N and of different H and W, as detectors' padded batches are. A
    rank without samples takes part and weighs nothing; where no rank has one, the running
    statistics stay as they are. Otherwise they become the same on all ranks.

    Each forward and each backward pass takes one all-reduce, in which every rank of the group has
    to take part: all ranks use the same layers in the same order. A deep copy of a layer shares its
    process group; with a group of its own, a layer cannot be pickled, as torch's cannot. What
    ``torch.jit.script`` makes of it pools over no processes, and where the layer does, it refuses.

    Args:
        *args: those of ``SwitchNorm``.
        process_group: the processes to pool over, as ``torch.distributed.new_group`` returned them;
            None for all.
        **kwargs: those of ``SwitchNorm``.

    Raises:
        TypeError: ``process_group`` is not a process group. Else see ``SwitchNorm``.
    """

    def __init__(
        self, *args: Any, process_group: ProcessGroup | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        check_process_group(process_group)
        self.process_group = process_group

    def __deepcopy__(self, memo: dict[int, Any]) -> 'SyncSwitchNorm':
        # A process group cannot be copied; the copy of the layer pools over the same one.
        memo[id(self.process_group)] = self.process_group
        copied = memo[id(self)] = type(self).__new__(type(self))
        copied.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return copied

    def __prepare_scriptable__(self) -> 'SyncSwitchNorm':
        """Refuse ``torch.jit.script``, which calls it, where the layer pools."""
        if self._group() is not None:
            raise RuntimeError(
                'torch.jit.script cannot pool over processes: call eval() on the model before, or '
                'revert_sync_switch_norm(model).'
            )
        return self

    def _group(self) -> ProcessGroup | None:
        if not (self.training and dist.is_available() and dist.is_initialized()):
            return None
        group = dist.group.WORLD if self.process_group is None else self.process_group
        return group if dist.get_world_size(group) > 1 else None


def check_process_group(process_group: ProcessGroup | None) -> None:
    """Raise TypeError unless it is None or what ``torch.distributed.new_group`` returns."""
    if process_group is None or isinstance(process_group, ProcessGroup):
        return
    # What new_group returns on the ranks that are left out.
    if process_group != dist.GroupMember.NON_GROUP_MEMBER:
        raise TypeError(
            'process_group must be None, for all ranks, or a group that '
            f'torch.distributed.new_group returned, not {process_group!r}.'
        )
