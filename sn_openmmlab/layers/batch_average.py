"""Average the running statistics over given batches: batch average, and weight averaging."""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from sn_openmmlab.layers.switch_norm import SwitchNorm


def update_bn(
    loader: Iterable[Any], model: nn.Module, device: torch.device | str | int | None = None
) -> None:
    """Set the running statistics of `model` to their averages over the batches of `loader`.

    It replaces `torch.optim.swa_utils.update_bn`, which ignores SN. SN, SyncSN and BatchNorm layers
    all get the mean of the means and variances of `'bn'` over the batches, each batch with the same
    weight. This is the batch average of the paper (Sec. 2, App. A).

    Layers that stay in evaluation mode although the model trains are frozen and keep their
    statistics. A layer that no batch reached keeps them too, and a warning names it. Where `model`
    has no running statistics, no batch is taken.

    Args:
        loader: yields the batches, each a tensor, or a list or tuple whose first item is one.
        model: the model to update; it is called with each batch in training mode, without
            gradients, and afterwards has the modes that it had.
        device: the device to move the batches to, or None.

    Example:
        ```python
        averaged = torch.optim.swa_utils.AveragedModel(model)
        ...  # train, with averaged.update_parameters(model)
        sn_openmmlab.update_bn(loader, averaged)
        ```
    """
    if not any(_keeps_statistics(layer) for layer in model.modules()):
        return
    with torch.no_grad(), average_batches(model):
        for batch in loader:
            x = batch[0] if isinstance(batch, list | tuple) else batch
            model(x if device is None else x.to(device))


@contextmanager
def average_batches(model: nn.Module) -> Iterator[None]:
    """Average the statistics of the batches that run through `model` in this context.

    Inside, the model is in training mode. Afterwards each SN, SyncSN and BatchNorm has the mean of
    the means and variances of `'bn'` over its batches, each batch with the same weight. SN averages
    the variance that training normalizes with. BatchNorm averages it times n / (n - 1), as in
    training.

    Layers that stay in evaluation mode although the model trains are frozen: they normalize with
    their statistics and keep them. A layer that no batch reached keeps them too, and a warning
    names it. The momentum and mode of every module are restored, and after an exception so are all
    running statistics.
    """
    with _training(model):
        layers = {
            name: layer
            for name, layer in model.named_modules()
            if _keeps_statistics(layer) and layer.training
        }
        before = {layer: _copy_statistics(layer) for layer in layers.values()}
        momenta = {layer: layer.momentum for layer in before}
        try:
            for layer in before:
                layer.reset_running_stats()
                layer.momentum = None
            yield
        except BaseException:
            _restore_statistics(before)
            raise
        finally:
            for layer, momentum in momenta.items():
                layer.momentum = momentum
    unseen = {name: layer for name, layer in layers.items() if layer.num_batches_tracked == 0}
    _restore_statistics({layer: before[layer] for layer in unseen.values()})
    if unseen:
        # The warning points to the line that called update_bn.
        warnings.warn(_describe_unseen(list(unseen), len(layers)), stacklevel=4)


@contextmanager
def _training(model: nn.Module) -> Iterator[None]:
    """Put `model` in training mode, and restore the mode of every module afterwards."""
    modes = {module: module.training for module in model.modules()}
    try:
        model.train()
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def _keeps_statistics(layer: nn.Module) -> bool:
    return isinstance(layer, _BatchNorm | SwitchNorm) and layer.running_mean is not None


def _statistics(layer: _BatchNorm | SwitchNorm) -> tuple[Tensor, Tensor, Tensor]:
    return layer.running_mean, layer.running_var, layer.num_batches_tracked


def _copy_statistics(layer: _BatchNorm | SwitchNorm) -> list[Tensor]:
    return [table.clone() for table in _statistics(layer)]


@torch.no_grad()
def _restore_statistics(copies: dict[nn.Module, list[Tensor]]) -> None:
    for layer, tables in copies.items():
        for table, copy in zip(_statistics(layer), tables, strict=True):
            table.copy_(copy)


def _describe_unseen(unseen: list[str], number: int) -> str:
    if len(unseen) == number:
        which = f'any of the {number} layers with running statistics'
    else:
        which = ', '.join(name or 'the model' for name in unseen)
    return f'No batch reached {which}: there the running statistics stay as they were.'
