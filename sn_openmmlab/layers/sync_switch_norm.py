"""The Switchable Normalization layer that pools its batch over several processes."""

import copy
from typing import Any

import torch.distributed as dist
from torch.distributed import ProcessGroup

from sn_openmmlab.layers.switch_norm import SwitchNorm


class SyncSwitchNorm(SwitchNorm):
    """Switchable Normalization that pools `'bn'` over the batches of several processes.

    It pools only while training, and only where the process group is initialized and has more than
    one rank. `torch.nn.SyncBatchNorm` does the same, but not on the CPU. Anywhere else the layer
    works as `SwitchNorm`, whose arguments, parameters, buffers and checkpoints it shares.

    Every sample has the same weight, whatever its rank and its number of positions. So ranks may
    hold batches of different N, H and W, such as the padded batches of detectors. A rank without
    samples takes part with no weight. The running statistics become the same on all ranks; where
    no rank has a sample, they stay as they are.

    Each forward and each backward pass takes one all-reduce. Every rank of the group must take
    part, so all ranks must use the same layers in the same order.

    A deep copy of a layer shares its process group. A layer with a process group of its own cannot
    be pickled, like torch's. A scripted layer never pools, so `torch.jit.script` refuses a layer
    that pools at that moment.

    Args:
        *args: as of `SwitchNorm`.
        process_group: the processes to pool over, from `torch.distributed.new_group`; None for all.
        **kwargs: as of `SwitchNorm`.

    Raises:
        TypeError: if `process_group` is not a process group; see also `SwitchNorm`.

    Example:
        ```python
        torch.distributed.init_process_group('nccl')
        layer = SyncSwitchNorm(64).cuda()
        y = layer(x)  # the moments of 'bn' are those of all ranks
        ```
    """

    def __init__(
        self, *args: Any, process_group: ProcessGroup | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        check_process_group(process_group)
        self.process_group = process_group

    def __deepcopy__(self, memo: dict[int, Any]) -> 'SyncSwitchNorm':
        # A process group cannot be copied: the copy of the layer pools over the same one.
        memo[id(self.process_group)] = self.process_group
        copied = memo[id(self)] = type(self).__new__(type(self))
        copied.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return copied

    def __prepare_scriptable__(self) -> 'SyncSwitchNorm':
        """Raise RuntimeError where the layer pools; `torch.jit.script` calls this."""
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
    """Raise TypeError unless it is None or a result of `torch.distributed.new_group`."""
    if process_group is None or isinstance(process_group, ProcessGroup):
        return
    # new_group returns this on ranks outside the group.
    if process_group != dist.GroupMember.NON_GROUP_MEMBER:
        raise TypeError(
            'process_group must be None, for all ranks, or a group that '
            f'torch.distributed.new_group returned, not {process_group!r}.'
        )
