"""Batches of the training data: how many, of what, and what they leave alone."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.runner import Runner
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler

from sn_openmmlab.errors import UsageError
from sn_openmmlab.inference.training_batches import count_images, training_batches
from tests.small_run import IMAGES, SmallData, image, register, small_config

PLAIN = {'train_dataloader.dataset.augments': False}


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Runner]:
    """Return a function that builds a runner with changes of the config."""
    register(monkeypatch)
    return lambda **changes: Runner.from_cfg(small_config(tmp_path / 'run', **changes))


def _indices(batch: dict[str, torch.Tensor]) -> list[int]:
    """Return which images a batch without augmentation holds."""
    return [
        index for x in batch['inputs'] for index in range(IMAGES) if torch.equal(x, image(index))
    ]


def _drawn(runner: Runner, number: int = 3, seed: int = 0) -> list[list[int]]:
    return [_indices(batch) for batch in training_batches(runner, number, seed)]


def test_an_epoch_has_each_image_once_and_ends(build: Callable) -> None:
    drawn = _drawn(build(**PLAIN))
    assert [len(batch) for batch in drawn] == [2, 2]
    assert sorted(drawn[0] + drawn[1]) == [0, 1, 2, 3]


def test_an_infinite_sampler_gives_as_many_as_asked_for(build: Callable) -> None:
    runner = build(**PLAIN, **{'train_dataloader.sampler.type': 'InfiniteSampler'})
    assert [len(batch) for batch in _drawn(runner, 5)] == [2] * 5


def test_the_seed_decides_the_order(build: Callable) -> None:
    runner = build(**PLAIN, **{'train_dataloader.batch_size': 1})
    orders = [_drawn(runner, 4, seed) for seed in (0, 0, 1, 3)]
    assert orders[0] == orders[1]
    assert orders[0] not in orders[2:]


def test_workers_draw_by_the_seed(build: Callable) -> None:
    runner = build(
        **{
            'train_dataloader.num_workers': 1,
            'train_dataloader.persistent_workers': True,
        }
    )
    first, again, other = (next(training_batches(runner, 1, seed))['inputs'] for seed in (0, 0, 1))
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    assert not torch.equal(first, other)


def test_in_a_training_the_data_set_is_a_copy_of_its_own(build: Callable) -> None:
    runner = build(**PLAIN)
    dataset = runner.train_dataloader.dataset  # builds the loop
    # As hooks change pipelines in the midst of a training.
    dataset.augments = True
    batch = next(training_batches(runner, 1, 0))
    assert not _indices(batch)
    assert dataset.taken == 0
    assert runner._train_loop.dataloader.dataset is dataset


def _with_loader(runner: Runner, loader: DataLoader) -> Runner:
    runner._train_dataloader = loader
    return runner


@pytest.mark.parametrize(
    'settings',
    [
        dict(batch_size=3),
        dict(batch_sampler=BatchSampler(SequentialSampler(range(IMAGES)), 3, drop_last=False)),
    ],
)
def test_a_runner_made_with_a_loader_gets_one_like_it(settings: dict, build: Callable) -> None:
    loader = DataLoader(SmallData(augments=False), **settings)
    runner = _with_loader(build(), loader)
    runner.train_dataloader  # noqa: B018, builds the loop
    drawn = _drawn(runner)
    assert [len(batch) for batch in drawn] == [3, 1]
    assert sorted(drawn[0] + drawn[1]) == [0, 1, 2, 3]


class Stream(IterableDataset):
    """Images without an end."""

    def __iter__(self) -> Any:
        while True:
            yield dict(inputs=image(0))


def test_a_stream_gives_as_many_as_asked_for(build: Callable) -> None:
    runner = _with_loader(build(), DataLoader(Stream(), batch_size=2))
    assert _drawn(runner, 3) == [[0, 0]] * 3


def test_a_sampler_without_a_batch_size_is_an_error_in_one_sentence(build: Callable) -> None:
    runner = _with_loader(build(), DataLoader(SmallData(), batch_sampler=[[0, 1], [2, 3]]))
    with pytest.raises(UsageError, match='cannot tell the batch size of a list: give the runner'):
        _drawn(runner)


def test_a_run_without_training_data_is_an_error_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch)
    config = small_config(tmp_path / 'run')
    for name in ('train_dataloader', 'train_cfg', 'optim_wrapper'):
        config.pop(name)
    sentence = 'a batch average needs the training data, and the config has no train_dataloader.'
    with pytest.raises(UsageError, match=f'^{re.escape(sentence)}$'):
        _drawn(Runner.from_cfg(config))


@pytest.mark.parametrize(
    ('batch', 'number'),
    [
        (dict(inputs=torch.zeros(3, 1)), 3),
        (dict(inputs=[0, 0, 0, 0], data_samples=[1, 1]), 2),
        (dict(inputs={}, data_samples=dict(sup=[1, None, None], teacher=[None, 1, 1])), 3),
        ((torch.zeros(3, 1), torch.zeros(3)), 3),
    ],
)
def test_images_are_counted(batch: Any, number: int) -> None:
    assert count_images(batch) == number
