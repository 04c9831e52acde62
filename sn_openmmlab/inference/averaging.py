"""The batch average of a model with the training data of a runner."""

import copy
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from mmengine.dist import all_reduce, get_rank
from mmengine.logging import MessageHub
from mmengine.runner import Runner
from rich.console import Console
from rich.progress import track
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

from sn_openmmlab.checkpoints.trial_loading import unwrapped
from sn_openmmlab.errors import UsageError
from sn_openmmlab.inference.random_state import own_random_state
from sn_openmmlab.inference.training_batches import count_images, training_batches
from sn_openmmlab.layers.batch_average import batch_average

# As many as fvcore's update_bn_stats takes.
NUM_BATCHES = 200
# Each pass takes the same batches, so that it can be repeated.
_SEED = 0


@dataclass
class Averaged:
    """What a batch average was made of.

    Attributes:
        layers: The names of the layers whose statistics were set.
        batches: The number of batches, on each rank.
        images: The number of images, on all ranks together.
    """

    layers: list[str] = field(default_factory=list)
    batches: int = 0
    images: int = 0


def average_over_training(
    model: nn.Module, runner: Runner, num_batches: int, variance: str, batch_norm: bool
) -> Averaged:
    """Set the running statistics of a model to their averages over batches of the training data.

    The batches are loaded and augmented as in the runner's training, and a copy of the model
    computes its losses on them, so that its heads get what they get in training. All random state,
    and all that the training itself uses, is as it was afterwards, also after an exception. See
    `sn_openmmlab.batch_average` for the estimator. Every rank has to call this function.

    Args:
        model: of the runner, or with other weights; bare, or wrapped for distribution.
        runner: what loads the training data, in a training or not.
        num_batches: how many batches on each rank; fewer if an epoch has fewer.
        variance: `'mean'` or `'pooled'`.
        batch_norm: whether to set BatchNorm and BatchRenorm layers, too.

    Raises:
        UsageError: the model is sharded or cannot be copied, or there is no training data.
    """
    if isinstance(model, FullyShardedDataParallel):
        raise UsageError(
            'a batch average cannot copy a model that is sharded over processes: take '
            'tools/batch_average.py after the training.'
        )
    done = Averaged()

    def run(copied: nn.Module, batch: Any) -> None:
        done.batches += 1
        done.images += count_images(batch)
        _compute_losses(copied, batch)

    with own_random_state(_SEED + get_rank()), _own_records(runner.message_hub):
        batches = _shown(training_batches(runner, num_batches, _SEED), num_batches)
        done.layers = batch_average(
            unwrapped(model), batches, run, variance=variance, batch_norm=batch_norm
        )
    images = torch.tensor(done.images)
    all_reduce(images)
    done.images = int(images)
    return done


def _compute_losses(model: nn.Module, batch: Any) -> None:
    data = model.data_preprocessor(batch, True)
    if isinstance(data, dict):
        model(**data, mode='loss')
    else:
        model(*data, mode='loss')


@contextmanager
def _own_records(hub: MessageHub) -> Iterator[None]:
    """Let models write to the message hub, and take back what they wrote.

    Some look up how far the training is, which is at 0 where there is none.
    """
    scalars, info = dict(hub.log_scalars), dict(hub.runtime_info)
    hub.log_scalars.update(copy.deepcopy(scalars))
    hub.runtime_info.update({'iter': 0, 'epoch': 0, **info})
    try:
        yield
    finally:
        for records, before in ((hub.log_scalars, scalars), (hub.runtime_info, info)):
            records.clear()
            records.update(before)


def _shown(batches: Iterable[Any], number: int) -> Iterable[Any]:
    """Show a progress bar in the terminal of the first rank while the batches are taken."""
    console = Console(stderr=True)
    hidden = get_rank() > 0 or not console.is_terminal
    return track(batches, 'Batch average', number, console=console, transient=True, disable=hidden)
