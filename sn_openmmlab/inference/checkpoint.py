"""A checkpoint with the running statistics of a batch average."""

import copy
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from sn_openmmlab import __version__
from sn_openmmlab.errors import UsageError
from sn_openmmlab.inference.averaging import Averaged


class Moved(NamedTuple):
    """How far the running statistics moved: medians over the channels of all layers.

    Attributes:
        means: Of the distances of the means, in standard deviations from before.
        variances: Of the relative changes of the variances.
        channels: The number of channels.
    """

    means: float
    variances: float
    channels: int


def with_statistics(
    checkpoint: dict[str, Any], model: nn.Module, layers: Iterable[str]
) -> tuple[dict[str, Any], Moved]:
    """Return a checkpoint with the running statistics of layers, and how far they moved.

    All else in it stays, such as the optimizer, and in a checkpoint of `EMAHook` the trained
    weights in `ema_state_dict`: `state_dict` holds the averaged ones, which are evaluated. Bare
    weights come to lie under `state_dict`.

    Args:
        checkpoint: as it was read, which stays as it is.
        model: that was loaded from it, with new statistics.
        layers: the names of the layers that have them.

    Raises:
        UsageError: the checkpoint has other names for them.
    """
    whole = checkpoint if 'state_dict' in checkpoint else {'state_dict': checkpoint}
    old = whole['state_dict']
    # With torch's _metadata, which old.copy() would lose.
    state = copy.copy(old)
    shifts, changes = [], []
    for name in layers:
        layer = model.get_submodule(name)
        mean_name, var_name = (_name_in(old, f'{name}.running_{kind}') for kind in ('mean', 'var'))
        mean, var = old[mean_name].double(), old[var_name].double()
        new_mean, new_var = layer.running_mean.cpu(), layer.running_var.cpu()
        shifts.append((new_mean - mean).abs() / (var + layer.eps).sqrt())
        changes.append((new_var - var).abs() / (var + layer.eps))
        state[mean_name] = new_mean.to(old[mean_name].dtype)
        state[var_name] = new_var.to(old[var_name].dtype)
    moved = Moved(_median(shifts), _median(changes), sum(map(len, shifts)))
    return {**whole, 'state_dict': state}, moved


def record_average(
    checkpoint: dict[str, Any],
    source: str | os.PathLike,
    done: Averaged,
    variance: str,
    batch_norm: bool,
) -> None:
    """Note in the `meta` of a checkpoint what its running statistics were made of."""
    meta = checkpoint.get('meta')
    checkpoint['meta'] = {
        **(meta if isinstance(meta, dict) else {}),
        'batch_average': dict(
            source=os.path.basename(source),
            tool=f'sn_openmmlab {__version__}',
            layers=len(done.layers),
            batches=done.batches,
            images=done.images,
            variance=variance,
            batch_norm=batch_norm,
        ),
    }


def _name_in(state: dict[str, Tensor], name: str) -> str:
    """Return the name of a weight of the model in a checkpoint.

    Raises:
        UsageError: it is not there.
    """
    for known in (name, f'module.{name}'):
        if known in state:
            return known
    raise UsageError(
        f'the checkpoint holds no {name}, where its new value would be written: its names are not '
        'those of the model. Load it into the model and save it anew.'
    )


def _median(tables: list[Tensor]) -> float:
    return torch.cat(tables).median().item()
