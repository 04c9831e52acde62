"""Batches of the training data, by a loader that shares nothing with the training's."""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from mmengine.dataset import DefaultSampler
from mmengine.dist import all_reduce
from mmengine.runner import Runner
from mmengine.runner.base_loop import BaseLoop
from torch.utils.data import DataLoader, IterableDataset

from sn_openmmlab.errors import UsageError


def training_batches(runner: Runner, number: int, seed: int) -> Iterator[Any]:
    """Yield batches as a training of the runner draws them, in the same number on each rank.

    Args:
        runner: in a training or not.
        number: how many batches on each rank. There are fewer if the loader of a rank ends.
        seed: of the order of the data, the same on all ranks, and of the workers.

    Raises:
        UsageError: the runner has no training data, or see `_loader_like`.
    """
    iterator = iter(_own_loader(runner, seed))
    for _ in range(number):
        batch = next(iterator, None)
        # Layers that communicate wait for every rank.
        if not _on_all_ranks(batch is not None):
            return
        yield batch


def running_loop(runner: Runner) -> BaseLoop | None:
    """Return the training loop of a runner, or None while it is not built, as in a test.

    `runner.train_loop`, and `runner.iter` with it, would build the loop and its data.
    """
    return runner._train_loop if isinstance(runner._train_loop, BaseLoop) else None


def count_images(batch: Any) -> int:
    """Return the number of images of a batch, in all its branches."""
    if isinstance(batch, dict):
        batch = batch.get('data_samples', batch.get('inputs'))
        branches = batch.values() if isinstance(batch, dict) else [batch]
        # A branch holds None in place of what belongs to another.
        return sum(sample is not None for branch in branches for sample in branch)
    return len(batch[0])


def _own_loader(runner: Runner, seed: int) -> DataLoader:
    """Return a new loader of the training data, with a data set and a sampler of its own.

    In a training it has a copy of the data set as it is then: hooks change pipelines.
    """
    settings, loop = runner._train_dataloader, running_loop(runner)
    if isinstance(settings, dict):
        changes = {} if loop is None else dict(dataset=loop.dataloader.dataset)
        if settings.get('num_workers'):
            changes['persistent_workers'] = False
        # This copies the data set.
        return runner.build_dataloader({**settings, **changes}, seed=seed)
    if loop is None and settings is None:
        raise UsageError(
            'a batch average needs the training data, and the config has no train_dataloader.'
        )
    return _loader_like(settings if loop is None else loop.dataloader, seed)


def _loader_like(loader: DataLoader, seed: int) -> DataLoader:
    """Return a loader with a copy of another's data set, which it shuffles.

    Its own sampler may be in the midst of an epoch, and cannot be copied then.

    Raises:
        UsageError: the size of its batches is not known.
    """
    size = loader.batch_size or getattr(loader.batch_sampler, 'batch_size', None)
    if size is None:
        raise UsageError(
            f'a batch average cannot tell the batch size of a {type(loader.batch_sampler).__name__}'
            ': give the runner the config of the train_dataloader, not a DataLoader.'
        )
    dataset = copy.deepcopy(loader.dataset)
    has_order = not isinstance(dataset, IterableDataset)
    return DataLoader(
        dataset,
        batch_size=size,
        sampler=DefaultSampler(dataset, shuffle=True, seed=seed) if has_order else None,
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
        worker_init_fn=loader.worker_init_fn,
        drop_last=loader.drop_last or bool(getattr(loader.batch_sampler, 'drop_last', False)),
    )


def _on_all_ranks(value: bool) -> bool:
    flag = torch.tensor(int(value))
    all_reduce(flag, op='min')
    return bool(flag)
