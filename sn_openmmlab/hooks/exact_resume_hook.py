"""The hook that makes a resumed training the one without the stop, bit for bit."""

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from mmengine.dist import all_gather_object, get_rank, get_world_size
from mmengine.hooks import Hook
from mmengine.logging import print_log
from mmengine.registry import DATA_SAMPLERS
from mmengine.runner import IterBasedTrainLoop, Runner
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader

from sn_openmmlab.hooks.interruption.accumulated_gradients import (
    accumulated_gradients,
    restore_gradients,
)
from sn_openmmlab.hooks.interruption.seeded_batches import SeededBatches, mixed_seed
from sn_openmmlab.inference.random_state import seed_random_numbers

_POSITION = 'data_position'
_GRADIENTS = 'accumulated_gradients'
# Of batches now: no training had so much larger ones before that. More would take hours to count.
_MOST_PER_ITERATION = 1024


class ExactResumeHook(Hook):
    """Make a training that was stopped and resumed the one without the stop, bit for bit.

    mmengine restores weights, averages, optimizer, schedules, loss scale and the history of the
    log. It loses the random numbers, those of the data workers included, the seed of the order of
    the data where the config has none, the place in an epoch, and gradients that are still being
    accumulated. Our tools add this hook to every training. For the toolbox's own tools, write in
    the config:

        custom_hooks = [dict(type='ExactResumeHook')]

    All random numbers are seeded anew for each iteration, from the seed of the run and the number
    of the iteration: in the process that trains as well as where a batch is loaded, there from the
    rank, too. So nothing needs to be stored, the number of workers changes nothing, and a
    validation does not either. A checkpoint holds the place in the data, where a resumed training
    goes on, also within an epoch. What is left out on the way is not loaded.

    With another batch size or another number of processes the training goes on from the same place
    as well as it can, with a warning. What the hook cannot keep is what a model, a transform or
    another hook holds outside of the checkpoint, such as cached images, random numbers of
    generators of their own, and in a training of several processes what differs between them:
    gradients that are still being accumulated, and running statistics within an epoch.
    """

    # Before hooks that draw random numbers.
    priority = 'VERY_HIGH'

    def __init__(self) -> None:
        self._loaded: dict[str, int] | None = None
        self._gradients: dict[str, Tensor] = {}
        self._batches: SeededBatches | None = None
        # The epoch that the following count in; in a training by iterations all is one.
        self._epoch = 0
        # How many images the epoch had used before an iteration, and which one that was.
        self._images = 0
        self._first = 0

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        """Keep the place in the data, and the gradients."""
        self._loaded = _position_in(checkpoint)
        kept = checkpoint.get(_GRADIENTS)
        kept = kept if isinstance(kept, dict) else {}
        self._gradients = {name: x for name, x in kept.items() if isinstance(x, Tensor)}

    def before_train(self, runner: Runner) -> None:
        """Give the batches their seeds, and go to the place where the training stopped."""
        loop, loader = runner.train_loop, runner.train_dataloader
        if runner.iter:
            restore_gradients(runner.model, self._gradients)
        self._gradients = {}
        if loader.batch_sampler is None:
            _warn('the training data has no sampler, so the order of its data cannot be restored.')
            return
        rank, seed = get_rank(), all_gather_object(runner.seed)[0]
        self._batches = SeededBatches(
            _unused_batch_sampler(runner._train_dataloader, loader, seed),
            first=lambda: loop.iter,
            seed_of=lambda iteration: mixed_seed(seed, 1 + rank, iteration),
        )
        # DataLoader allows no assignment, since it may have begun; what it has begun is dropped.
        vars(loader).update(
            batch_sampler=self._batches, sampler=self._batches.sampler, _iterator=None
        )
        skipped = self._resume_at(runner) if runner.iter else 0
        if isinstance(loop, IterBasedTrainLoop):
            self._go_to_iteration(loop, skipped)
        elif skipped:
            self._go_into_epoch(loop, skipped)

    def before_train_epoch(self, runner: Runner) -> None:
        """Count the images anew, unless they were resumed."""
        if runner.epoch != self._epoch:
            self._epoch, self._first, self._images = runner.epoch, runner.iter, 0

    def before_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None) -> None:
        """Seed what the iteration draws."""
        seed_random_numbers(mixed_seed(runner.seed, 0, runner.iter))

    def after_train_epoch(self, runner: Runner) -> None:
        """Count the batches of the next epoch from 0."""
        vars(runner.train_loop).pop('run_iter', None)

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        """Store the place in the data, and gradients that no step has used yet."""
        if get_world_size() == 1:
            gradients = accumulated_gradients(runner.model, runner.optim_wrapper)
            checkpoint.update({_GRADIENTS: gradients} if gradients else {})
        if self._batches is None:
            return
        meta = checkpoint['meta']
        in_epoch = meta['epoch'] == self._epoch
        done = self._images + (meta['iter'] - self._first) * self._images_per_step
        checkpoint[_POSITION] = {'images': done if in_epoch else 0, **self._batch}

    @property
    def _batch(self) -> dict[str, int]:
        return {'batch_size': self._batches.batch_size, 'processes': get_world_size()}

    @property
    def _images_per_step(self) -> int:
        return self._batches.batch_size * get_world_size()

    def _resume_at(self, runner: Runner) -> int:
        """Return how many batches of the epoch were used before the checkpoint."""
        by_iteration = isinstance(runner.train_loop, IterBasedTrainLoop)
        self._epoch, self._first = runner.epoch, runner.iter
        most = _MOST_PER_ITERATION * runner.iter * self._images_per_step
        if self._loaded is None or self._loaded['images'] > most:
            self._images = runner.iter * self._images_per_step if by_iteration else 0
            _warn(
                'the checkpoint is of a training without ExactResumeHook, or its place in the data '
                'is damaged, so this is not the training that would have followed without the stop.'
            )
        else:
            self._images = self._loaded['images']
            before = {name: self._loaded[name] for name in self._batch}
            if before != self._batch:
                _warn(
                    f'the checkpoint was written with batches of {_said(before)}, and the training '
                    f'goes on with {_said(self._batch)}: from the same place in the data, but not '
                    'as it would have without the stop.'
                )
        skipped = self._images // self._images_per_step
        if by_iteration:
            return skipped if runner.iter < runner.train_loop.max_iters else 0
        return min(skipped, len(self._batches))

    def _go_to_iteration(self, loop: IterBasedTrainLoop, skipped: int) -> None:
        epoch = self._batches.skip(skipped) if skipped else 0
        kind = type(loop.dataloader_iterator)
        # Dropped first, since with workers the first of them may have begun.
        loop.dataloader_iterator = None
        iterator = kind(loop.dataloader)
        iterator._epoch = epoch
        loop.dataloader_iterator = _Placed(iterator, 0 if hasattr(kind, 'skip_iter') else loop.iter)

    def _go_into_epoch(self, loop: Any, skipped: int) -> None:
        self._batches.skip(skipped, loop.epoch)
        run_iter = loop.run_iter
        loop.run_iter = lambda index, batch: run_iter(index + skipped, batch)


class _Placed:
    """The batches of a training by iterations, which are at the right place already.

    Args:
        iterator: mmengine's.
        asked: how many batches mmengine will ask for in order to leave them out; its newer
            versions call ``skip_iter`` instead.
    """

    def __init__(self, iterator: Iterator[Any], asked: int) -> None:
        self._iterator = iterator
        self._asked = asked

    def skip_iter(self, number: int) -> None:
        """Do nothing."""

    def __iter__(self) -> '_Placed':
        return self

    def __next__(self) -> Any:
        if self._asked:
            self._asked -= 1
            return None
        return next(self._iterator)


def _unused_batch_sampler(settings: Any, loader: DataLoader, seed: int) -> Any:
    """Return a batch sampler like that of a loader, which nothing has iterated over.

    Args:
        settings: of the loader, in a config, as mmengine builds it; else its own is returned.
        loader: the loader.
        seed: of the order of the data, the same on all ranks.
    """
    if not (isinstance(settings, Mapping) and isinstance(settings.get('sampler'), Mapping)):
        return loader.batch_sampler
    data = dict(dataset=loader.dataset, seed=seed)
    sampler = DATA_SAMPLERS.build(settings['sampler'], default_args=data)
    if settings.get('batch_sampler') is None:
        return BatchSampler(sampler, loader.batch_size, loader.drop_last)
    batch = dict(sampler=sampler, batch_size=settings['batch_size'])
    return DATA_SAMPLERS.build(settings['batch_sampler'], default_args=batch)


def _position_in(checkpoint: Mapping[str, Any]) -> dict[str, int] | None:
    """Return the place in the data that a checkpoint holds, or None if there is none to use."""
    position = checkpoint.get(_POSITION)
    names = ('images', 'batch_size', 'processes')
    values = [position.get(name) for name in names] if isinstance(position, dict) else [None]
    fits = all(isinstance(value, int) and value >= 0 for value in values)
    return position if fits else None


def _said(batch: Mapping[str, int]) -> str:
    number = batch['processes']
    return f'{batch["batch_size"]} on {number} process{"es" * (number > 1)}'


def _warn(text: str) -> None:
    print_log(f'ExactResumeHook: {text}', logger='current', level=logging.WARNING)
