"""Building models fast: their weights stay as the memory was."""

import copy
import math
from typing import Any

import torch
from mmcv.ops import SyncBatchNorm as MMSyncBatchNorm
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from torch import distributed, nn
from torch.nn.modules.batchnorm import SyncBatchNorm, _BatchNorm
from torch.overrides import TorchFunctionMode

from sn_openmmlab.layers.switch_norm import SwitchNorm

_FILLS = {
    getattr(torch.Tensor, name)
    for name in ('normal_', 'uniform_', 'fill_', 'zero_', 'erfinv_', 'mul_', 'add_', 'clamp_')
}
# Small tensors may hold settings that a constructor computes with.
_LARGE = 1 << 16


class Unfilled(TorchFunctionMode):
    """Skip the initialisation of large tensors, which takes nearly all the time of building.

    Memory that nothing is written to is not taken from the machine either: a model of a billion
    parameters is built in a process of a few hundred megabytes.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, '__module__', None) == 'torch.nn.init' or func in _FILLS:
            tensor = args[0] if args else kwargs['tensor']
            if tensor.numel() >= _LARGE:
                return tensor
        return func(*args, **kwargs)


def build(config: Config) -> nn.Module:
    """Build the model of a config as mmengine's runner does; its large weights are not filled."""
    if not distributed.is_initialized():
        # mmcv's SyncBatchNorm asks for the group of processes when it is built.
        store = distributed.HashStore()
        distributed.init_process_group('gloo', store=store, rank=0, world_size=1)
    init_default_scope(config.default_scope)
    with Unfilled():
        # Some models change the config that they are built from.
        return MODELS.build(copy.deepcopy(config.model))


def fill(model: nn.Module) -> None:
    """Give a model from `build` initial weights: its own, but large ones as in a new Linear."""
    with Unfilled():
        model.init_weights()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.numel() >= _LARGE:
                weight.uniform_(-1, 1).div_(math.sqrt(weight[0].numel()))


def replaceable(model: nn.Module) -> dict[str, nn.Module]:
    """Return the BatchNorm, SyncBN and GroupNorm layers of a model by name."""
    kinds = (_BatchNorm, MMSyncBatchNorm, nn.GroupNorm)
    return {name: layer for name, layer in model.named_modules() if isinstance(layer, kinds)}


def kind(layer: nn.Module) -> str:
    """Return ``'BN'``, ``'SyncBN'``, ``'MMSyncBN'`` or ``'GN'``."""
    if isinstance(layer, nn.GroupNorm):
        return 'GN'
    if isinstance(layer, MMSyncBatchNorm):
        return 'MMSyncBN'
    return 'SyncBN' if isinstance(layer, SyncBatchNorm) else 'BN'


def switchable(model: nn.Module) -> dict[str, SwitchNorm]:
    """Return the SN layers of a model by name."""
    found = model.named_modules()
    return {name: layer for name, layer in found if isinstance(layer, SwitchNorm)}
