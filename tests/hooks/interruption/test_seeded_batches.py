"""Batches bring their seeds along, wherever they begin and wherever they are loaded."""

import pickle
import random

import numpy as np
import torch
from mmengine.dataset import DefaultSampler, InfiniteSampler
from torch.utils.data import BatchSampler, DataLoader, Dataset

from sn_openmmlab.hooks.interruption.seeded_batches import SeededBatch, SeededBatches, mixed_seed

SIZE = 10


class Drawing(Dataset):
    """Each item is its index and what three generators draw."""

    def __len__(self) -> int:
        return SIZE

    def __getitem__(self, index: int) -> list[float]:
        return [float(index), random.random(), np.random.rand(), torch.rand(()).item()]


def batches(sampler: object, first: int = 0) -> SeededBatches:
    return SeededBatches(BatchSampler(sampler, 3, False), lambda: first, lambda number: 7 + number)


def loaded(order: SeededBatches, workers: int, number: int) -> list[list[float]]:
    """Return the first items that a loader gives."""
    loader = DataLoader(
        Drawing(), batch_sampler=order, num_workers=workers, collate_fn=lambda items: items
    )
    return [item for batch, _ in zip(loader, range(number), strict=False) for item in batch]


def drawn(seed: int) -> list[float]:
    """Return what the generators draw for the first item of a batch."""
    numpy = np.random.RandomState(seed).rand()
    torch_ = torch.rand((), generator=torch.Generator().manual_seed(seed)).item()
    return [random.Random(seed).random(), numpy, torch_]


def test_seeds_differ() -> None:
    seeds = {mixed_seed(*numbers) for numbers in np.ndindex(9, 9, 9)}
    assert len(seeds) == 9**3
    assert all(0 <= seed < 2**32 for seed in seeds)
    assert mixed_seed(1, 2, 3) == mixed_seed(1, 2, 3)


def test_a_batch_keeps_its_seed_when_it_is_sent_and_draws_nothing_then() -> None:
    before = random.getstate()
    sent = pickle.loads(pickle.dumps(SeededBatch([4, 2], 7)))
    assert random.getstate() == before
    assert (len(sent), sent.seed, sent[1]) == (2, 7, 2)
    assert list(sent) == [4, 2]
    assert [random.random(), np.random.rand(), torch.rand(()).item()] == drawn(7)


def test_each_batch_draws_from_its_seed_in_any_process() -> None:
    here = loaded(batches(range(SIZE)), 0, 4)
    assert [item[0] for item in here] == list(range(SIZE))
    assert [here[3 * i][1:] for i in range(4)] == [drawn(7 + i) for i in range(4)]
    assert loaded(batches(range(SIZE)), 2, 4) == here


def test_what_follows_a_skip_is_what_would_have_followed() -> None:
    whole = loaded(batches(InfiniteSampler(Drawing(), seed=3)), 0, 9)
    for workers in (0, 2):
        rest = batches(InfiniteSampler(Drawing(), seed=3), first=5)
        assert rest.skip(5) == 0
        assert loaded(rest, workers, 4) == whole[15:]


def test_a_skip_counts_epochs_and_orders_each_anew() -> None:
    # Ten images are four batches.
    sampler = DefaultSampler(Drawing(), seed=3)
    order = batches(sampler)
    epochs = []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        epochs.append([batch[:] for batch in order])
    assert len(order) == 4 and epochs[0] != epochs[1]
    for number in range(1, 12):
        epoch, place = divmod(number, 4)
        if place == 0:  # The last epoch is over, and the next has not begun.
            epoch, place = epoch - 1, 4
        assert order.skip(number) == epoch
        assert [batch[:] for batch in order] == epochs[epoch][place:]
    assert order.skip(1, epoch=2) == 2
    assert [batch[:] for batch in order] == epochs[2][1:]


def test_hooks_find_the_sampler_and_the_size() -> None:
    sampler = DefaultSampler(Drawing(), seed=3)
    order = batches(sampler)
    assert (order.sampler, order.batch_size) == (sampler, 3)


def test_a_sampler_without_images_ends_the_skip() -> None:
    assert batches([]).skip(5) == 0


def test_batches_may_show_no_sampler() -> None:
    batches = SeededBatches([[0, 1], [2]], lambda: 0, lambda number: number)
    assert batches.sampler is None
    batches.skip(1)
    assert list(batches) == [[2]]
