"""Running statistics as the average over given batches, as weight averaging needs them."""

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
    """Set the running statistics of ``model`` to their averages over the batches of ``loader``.

    It does for SN and SyncSN what :func:`torch.optim.swa_utils.update_bn` does for BatchNorm, and
    that too, with the same estimator; see :func:`average_batches`. torch's own passes SN by in
    silence. Where ``model`` keeps no running statistics, no batch is taken.

    Args:
        loader: gives the batches: each a tensor, or a list or tuple whose first item is one.
        model: called with each batch in training mode, without gradients.
        device: where the batches go before; None to leave them where they are.
    """
    if not any(_keeps_statistics(layer) for layer in model.modules()):
        return
    with torch.no_grad(), average_batches(model):
        for batch in loader:
            x = batch[0] if isinstance(batch, list | tuple) else batch
            model(x if device is None else x.to(device))


@contextmanager
def average_batches(model: nn.Module) -> Iterator[None]:
    """Let the batches that run through ``model`` in this context average in its statistics.

    Inside, the model is in training mode. Afterwards each SN, SyncSN and BatchNorm has the mean,
    over its batches, of the means and variances of ``'bn'``: each batch weighs the same, whatever
    its size. SN averages the variance that training normalizes with, BatchNorm the one times
    n / (n - 1), as in training.

    Layers that stay in evaluation although the model trains are frozen: they normalize with their
    statistics and keep them. A layer that no batch reached keeps them too, and a warning names it.
    Momentum and the mode of every module become what they were, and after an exception so do all
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
        # Shown as of the line that called update_bn.
        warnings.warn(_describe_unseen(list(unseen), len(layers)), stacklevel=4)


@contextmanager
def _training(model: nn.Module) -> Iterator[None]:
    """Put ``model`` in training mode, and afterwards every module in the mode that it had."""
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
