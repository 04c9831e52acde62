"""Average the running statistics over given batches: batch average, and weight averaging."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase

from sn_openmmlab.kernels.merge import merge_moments
from sn_openmmlab.layers.arguments import check_choice
from sn_openmmlab.layers.batch_renorm import BatchRenorm
from sn_openmmlab.layers.model_copy import bare_model, copy_model
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.ops.batch import count_samples

Batch = TypeVar('Batch')
VARIANCES = ('mean', 'pooled')


def batch_average(
    model: nn.Module,
    batches: Iterable[Batch],
    run: Callable[[nn.Module, Batch], Any],
    *,
    variance: str = 'mean',
    batch_norm: bool = False,
) -> list[str]:
    """Set the running statistics of the SN layers of `model` to their averages over batches.

    This is the batch average of the paper (Sec. 2 "Inference", App. A), by which its networks were
    evaluated. The batches run through a deep copy of `model` in training mode, without gradients.
    Then `running_mean` and `running_var` of `model` are set; nothing else of it changes, and after
    an exception nothing at all.

    A layer that is called with n samples gives the mean μ and variance σ² of `'bn'` over that call,
    which are what training normalizes with. Over all calls of the layer, the averages weighted by n
    are

        running_mean = avg(μ)
        running_var  = avg(σ²)                              with variance='mean', the paper's
        running_var  = avg(σ²) + avg((μ - running_mean)²)   with variance='pooled'

    With batches of one size these are plain averages. The first variance is that of a typical batch
    of training. The second is that of all samples as one batch, if the calls have equally many
    positions; it is larger, the more so the smaller the batches. BatchNorm's variance of a batch is
    that of its training, times m / (m - 1) with m values per channel. With `batch_norm=True` and
    the mean variance this is what MMPretrain's `PreciseBNHook` computes of batches of one size.

    In a distributed run every rank calls this function with as many batches. The averages are over
    the batches of all ranks and equal on all of them. A rank whose batches fail leaves the others
    waiting, as in training.

    Limits:

    - The copy takes the memory of a second model.
    - All layers take the statistics of one pass. Those of the later ones belong to earlier layers
      that normalize by the batch, not by the averages.
    - Random layers such as dropout draw from the random state of torch, as in training.
    - `num_batches_tracked` counts the batches of training, and stays.

    Left alone are layers without running statistics or that do not use them, and layers that stay
    in evaluation mode although the model trains: frozen stages, `norm_eval`. A layer that no batch
    reached keeps its statistics, and a warning names it.

    Args:
        model: the model; wrappers of torch around it, such as DDP, are left out of the copy.
        batches: the batches of this rank. None is taken if there is no layer to set.
        run: calls its first argument, the copy, on its second, a batch, as in training.
        variance: `'mean'` or `'pooled'`.
        batch_norm: whether to set BatchNorm, SyncBatchNorm and BatchRenorm layers, too.

    Returns:
        The names of the layers whose statistics were set.

    Raises:
        ValueError: if `variance` is unknown.
        UsageError: if `model` cannot be copied.

    Example:
        ```python
        batch_average(model, loader, lambda model, batch: model(batch['image']))
        ```
    """
    done, unseen = _average(model, batches, run, variance, batch_norm)
    _warn_of_unseen(done, unseen)
    return done


def update_bn(
    loader: Iterable[Any], model: nn.Module, device: torch.device | str | int | None = None
) -> None:
    """Set the running statistics of `model` to their averages over the batches of `loader`.

    It replaces `torch.optim.swa_utils.update_bn`, which ignores SN. SN, SyncSN, BatchNorm and
    BatchRenorm layers all get the means of the batch's means and variances, each batch weighted by
    its samples: see `batch_average`, which this function calls and which tells more.

    Args:
        loader: yields the batches, each a tensor, or a list or tuple whose first item is one.
        model: the model to update. A copy of it is called with each batch.
        device: the device to move the batches to, or None.

    Example:
        ```python
        averaged = torch.optim.swa_utils.AveragedModel(model)
        ...  # train, with averaged.update_parameters(model)
        sn_openmmlab.update_bn(loader, averaged)
        ```
    """

    def run(copied: nn.Module, batch: Any) -> None:
        x = batch[0] if isinstance(batch, list | tuple) else batch
        copied(x if device is None else x.to(device))

    _warn_of_unseen(*_average(model, loader, run, 'mean', batch_norm=True))


def uses_statistics(layer: nn.Module, batch_norm: bool) -> bool:
    """Return whether a layer in evaluation normalizes with statistics that this file sets."""
    if isinstance(layer, SwitchNorm):
        return layer.running_mean is not None and 'bn' in layer.used_scopes
    like_batch_norm = batch_norm and isinstance(layer, _BatchNorm | BatchRenorm)
    return like_batch_norm and layer.running_mean is not None


def _average(
    model: nn.Module,
    batches: Iterable[Batch],
    run: Callable[[nn.Module, Batch], Any],
    variance: str,
    batch_norm: bool,
) -> tuple[list[str], list[str]]:
    """Set the statistics; return the names of the layers that were set and not reached."""
    check_choice('variance', variance, VARIANCES)
    model = bare_model(model)
    if not any(uses_statistics(layer, batch_norm) for layer in model.modules()):
        return [], []
    copied = copy_model(model)
    copied.train()
    averages = {
        name: _CallAverage(layer)
        for name, layer in copied.named_modules()
        if layer.training and uses_statistics(layer, batch_norm)
    }
    if not averages:
        return [], []
    with torch.no_grad():
        for batch in batches:
            run(copied, batch)
        rows = _merge_ranks([average.row for average in averages.values()])
        reached = {name: row for name, row in zip(averages, rows, strict=True) if row[0] > 0}
        for name, row in reached.items():
            _set_statistics(model.get_submodule(name), row, variance)
    return list(reached), [name for name in averages if name not in reached]


class _CallAverage:
    """The average over the calls of one layer in training mode.

    Attributes:
        row: (1 + 3C,), in float64: the number of samples, and per channel the averages of the means
            and of the variances, and the variance of the means.
    """

    def __init__(self, layer: _NormBase) -> None:
        self._kept = {name: buffer.clone() for name, buffer in layer.named_buffers(recurse=False)}
        self.row = layer.running_mean.new_zeros(1 + 3 * layer.num_features, dtype=torch.float64)
        # The running statistics are those of the last call alone.
        layer.momentum = 1.0
        layer.register_forward_pre_hook(self._before)
        layer.register_forward_hook(self._after)

    def _before(self, layer: _NormBase, _: Any) -> None:
        # What is not finite would stay so: 0 · inf is NaN. BatchRenorm normalizes with them.
        if layer.training and not isinstance(layer, BatchRenorm):
            layer.reset_running_stats()

    def _after(self, layer: _NormBase, _: Any, y: Tensor) -> None:
        if not layer.training:
            return
        mean, var = (table.double() for table in _statistics(layer))
        if samples := count_samples(y):
            call = torch.cat([mean.new_full((1,), samples), mean, var, torch.zeros_like(mean)])
            self.row = _merge(torch.stack([self.row, call]))
        # A model may put its layers in evaluation mode for a part of its training step.
        for name, kept in self._kept.items():
            layer.get_buffer(name).copy_(kept)


def _statistics(layer: _NormBase) -> tuple[Tensor, Tensor]:
    return layer.running_mean, layer.running_var


def _set_statistics(layer: nn.Module, row: Tensor, variance: str) -> None:
    mean, var, spread = row[1:].chunk(3)
    layer.running_mean.copy_(mean)
    layer.running_var.copy_(var if variance == 'mean' else var + spread)


def _merge(rows: Tensor) -> Tensor:
    """Return the row of the calls of all `rows`, (parts, 1 + 3C)."""
    samples = rows[:, :1]
    total = samples.sum(0)
    shares = samples / total.clamp(min=1)
    means, variances, spreads = rows[:, 1:].chunk(3, dim=1)
    mean, spread = merge_moments(means, spreads, shares)
    return torch.cat([total, mean, (shares * variances).sum(0), spread])


def _merge_ranks(rows: Sequence[Tensor]) -> list[Tensor]:
    """Return the rows of all ranks together, by one all-reduce; those given where there is one."""
    if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return list(rows)
    own = torch.cat([row.to(rows[0].device) for row in rows])
    table = own.new_zeros(dist.get_world_size(), len(own))
    table[dist.get_rank()] = own
    dist.all_reduce(table)
    return [_merge(part) for part in table.split([len(row) for row in rows], dim=1)]


def _warn_of_unseen(done: Sequence[str], unseen: Sequence[str]) -> None:
    if not unseen:
        return
    if done:
        shown = ', '.join(name or 'the model' for name in unseen[:3])
        which = shown if len(unseen) <= 3 else f'{shown} and {len(unseen) - 3} more layers'
    else:
        which = f'any of the {len(unseen)} layers with running statistics'
    # The warning points to the line that called the public function.
    warnings.warn(
        f'No batch reached {which}: there the running statistics stay as they were.', stacklevel=3
    )
