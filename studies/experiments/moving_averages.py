"""Moving averages with several momenta at once, beside a network that trains."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from sn_openmmlab.layers.switch_norm import SwitchNorm


class MovingAverages:
    """The running statistics that a network in training would have with each of several momenta.

    What a network learns does not depend on its running statistics. So one training shows them all:
    its layers get the momentum 1 and hold the moments of the last batch, and the averages are taken
    here, from the start 0 and 1 of the layers.

    Args:
        model: its layers with running statistics, SN and BatchNorm, are changed.
        momenta: the share of the new value in each average.
    """

    def __init__(self, model: nn.Module, momenta: Sequence[float]) -> None:
        self._layers = [layer for layer in model.modules() if _tracks(layer)]
        self._averages = {momentum: self._starts() for momentum in momenta}
        self._watches = True
        for layer in self._layers:
            layer.momentum = 1.0
            layer.register_forward_hook(self._add)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Ignore the batches in this context, and restore the layers' statistics at its end."""
        before = {layer: _copy(layer) for layer in self._layers}
        self._watches = False
        try:
            yield
        finally:
            self._watches = True
            _load(before)

    def load(self, momentum: float) -> None:
        """Set the running statistics of the layers to the averages with a momentum."""
        _load(self._averages[momentum])

    def _starts(self) -> dict[nn.Module, list[Tensor]]:
        return {
            layer: [torch.zeros_like(layer.running_mean), torch.ones_like(layer.running_var)]
            for layer in self._layers
        }

    @torch.no_grad()
    def _add(self, layer: nn.Module, *_: object) -> None:
        if not (self._watches and layer.training):
            return
        for momentum, averages in self._averages.items():
            for average, new in zip(averages[layer], _statistics(layer), strict=True):
                average.lerp_(new, momentum)


def _tracks(layer: nn.Module) -> bool:
    return isinstance(layer, _BatchNorm | SwitchNorm) and layer.running_mean is not None


def _statistics(layer: nn.Module) -> tuple[Tensor, Tensor]:
    return layer.running_mean, layer.running_var


def _copy(layer: nn.Module) -> list[Tensor]:
    return [table.clone() for table in _statistics(layer)]


@torch.no_grad()
def _load(averages: dict[nn.Module, list[Tensor]]) -> None:
    for layer, tables in averages.items():
        for table, average in zip(_statistics(layer), tables, strict=True):
            table.copy_(average)
