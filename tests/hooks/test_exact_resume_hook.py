"""A training that is stopped and resumed is the one without the stop, bit for bit."""

import gc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch.utils.data import DataLoader, IterableDataset

import sn_openmmlab  # noqa: F401  # registers the hook
from sn_openmmlab.hooks.exact_resume_hook import ExactResumeHook, _Placed
from tests.resumed import assert_same_training
from tests.small_run import SmallData, image, register, small_config

HOOK = dict(type='ExactResumeHook')
EPOCHS = dict(train_cfg=dict(by_epoch=True, max_epochs=3))
ITERATIONS = dict(train_cfg=dict(by_epoch=False, max_iters=7, val_interval=2))
INFINITE = {'train_dataloader.sampler.type': 'InfiniteSampler'}
WORKERS = {'train_dataloader.num_workers': 2}
PERSISTENT = {**WORKERS, 'train_dataloader.persistent_workers': True}
UNVALIDATED = dict(val_dataloader=None, val_cfg=None, val_evaluator=None)
# The changes of the config, whether checkpoints count epochs, and after which training stops.
KINDS = {
    'between epochs': (EPOCHS, True, 1),
    'within an epoch': (EPOCHS, False, 3),
    'at the end of an epoch': (EPOCHS, False, 4),
    'by iterations': ({**ITERATIONS, **INFINITE}, False, 3),
    'by iterations of a finite sampler': (ITERATIONS, False, 5),
}


class Witness(Hook):
    """Keep the images of each step and its place in the epoch."""

    def __init__(self) -> None:
        self.images: list[torch.Tensor] = []
        self.places: list[int] = []

    def after_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        self.images.append(data_batch['inputs'].clone())
        self.places.append(batch_idx)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    register(monkeypatch)
    # mmengine waits between the epochs of a training by iterations, torch for persistent workers.
    monkeypatch.setattr('mmengine.runner.loops.time.sleep', lambda seconds: None)
    monkeypatch.setattr('torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL', 0.2)
    yield
    gc.collect()


@pytest.fixture
def train(tmp_path: Path) -> Callable[..., Witness]:
    """Return a function that trains in a folder, with a checkpoint after each epoch or step."""

    def run(
        folder: str, by_epoch: bool = True, start: Path | None = None, **changes: Any
    ) -> Witness:
        checkpoint = dict(type='CheckpointHook', interval=1, by_epoch=by_epoch)
        settings = {
            'custom_hooks': [HOOK, dict(type='EMAHook', momentum=0.2)],
            'default_hooks': dict(checkpoint=checkpoint, logger=dict(type='LoggerHook')),
            'param_scheduler': [dict(type='PolyLR', end=9, by_epoch=False)],
            'optim_wrapper.optimizer.momentum': 0.9,
            'load_from': None if start is None else str(start),
            'resume': start is not None,
            **changes,
        }
        runner = Runner.from_cfg(small_config(tmp_path / folder, **settings))
        witness = Witness()
        runner.register_hook(witness)
        runner.train()
        return witness

    return run


@pytest.fixture
def train_both(train: Callable, tmp_path: Path) -> Callable[..., tuple[Witness, Witness]]:
    """Return a function that trains at once and with a stop, and compares the checkpoints."""

    def run(by_epoch: bool, stop: int, **changes: Any) -> tuple[Witness, Witness]:
        unit = 'epoch' if by_epoch else 'iter'
        whole = train('whole', by_epoch, **changes)
        rest = train('rest', by_epoch, tmp_path / f'whole/{unit}_{stop}.pth', **changes)
        files = sorted((tmp_path / 'rest').glob('*.pth'))
        assert files
        for file in files:
            # A checkpoint of an epoch does not hold the validation that follows.
            assert_same_training(file, tmp_path / 'whole' / file.name, metrics=not by_epoch)
        return whole, rest

    return run


@pytest.mark.parametrize('workers', [{}, WORKERS], ids=['no workers', 'workers'])
@pytest.mark.parametrize('kind', KINDS)
def test_the_rest_of_a_training_is_the_same(kind: str, workers: dict, train_both: Callable) -> None:
    changes, by_epoch, stop = KINDS[kind]
    whole, rest = train_both(by_epoch, stop, **changes, **workers)
    assert rest.places == whole.places[-len(rest.places) :]
    assert len(rest.places) < len(whole.places)


def test_workers_that_go_on_from_epoch_to_epoch_change_nothing(train_both: Callable) -> None:
    train_both(True, 1, **EPOCHS, **PERSISTENT)


def test_mmengine_alone_does_not_resume_exactly(train_both: Callable) -> None:
    with pytest.raises(AssertionError, match='state_dict'):
        train_both(True, 1, **EPOCHS, custom_hooks=[])


def test_what_was_used_is_not_loaded_again(
    train_both: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    load = SmallData.__getitem__

    def counted(self: SmallData, index: int) -> Any:
        taken.append(self)
        return load(self, index)

    monkeypatch.setattr(SmallData, '__getitem__', counted)
    _, rest = train_both(False, 5, **ITERATIONS, **INFINITE, **UNVALIDATED)
    assert len(rest.places) == 2
    assert taken.count(taken[-1]) == 4


def test_a_training_without_a_seed_keeps_the_one_that_it_drew(train_both: Callable) -> None:
    train_both(True, 1, **EPOCHS, randomness=dict(seed=None))


def test_neither_workers_nor_validations_change_a_training(train: Callable, tmp_path: Path) -> None:
    train('here')
    train('workers', **WORKERS)
    train('unvalidated', **UNVALIDATED)
    for other in ('workers', 'unvalidated'):
        files = [tmp_path / folder / 'epoch_2.pth' for folder in ('here', other)]
        assert_same_training(*files, metrics=False)


def test_each_step_draws_other_numbers(train: Callable) -> None:
    witness = train('run', **{**EPOCHS, 'train_dataloader.dataset.augments': True})
    factors = [
        (batch[0] / image(index)).mean()
        for batch in witness.images
        for index in range(4)
        if (batch[0] / image(index)).std() < 1e-3
    ]
    assert len({round(factor.item(), 5) for factor in factors}) == 6


def test_a_loss_scale_goes_on(train_both: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    module = 'mmengine.optim.optimizer.amp_optimizer_wrapper'
    monkeypatch.setattr(f'{module}.is_cuda_available', lambda: True)
    monkeypatch.setattr(f'{module}.GradScaler', partial(torch.amp.GradScaler, 'cpu'))
    scale = dict(init_scale=16.0, growth_interval=2)
    wrapper = dict(type='AmpOptimWrapper', dtype='bfloat16', loss_scale=scale)
    whole = dict(wrapper, optimizer=dict(type='Adam', lr=0.1))
    train_both(False, 3, **EPOCHS, optim_wrapper=whole, **{'optim_wrapper.optimizer.momentum': 0})


@pytest.mark.parametrize('stop', [2, 3])
def test_accumulated_gradients_go_on(stop: int, train_both: Callable, tmp_path: Path) -> None:
    train_both(False, stop, **EPOCHS, **{'optim_wrapper.accumulative_counts': 2})
    saved = torch.load(tmp_path / f'whole/iter_{stop}.pth', weights_only=False)
    assert ('accumulated_gradients' in saved) == (stop == 3)


@pytest.mark.parametrize(
    ('before', 'after', 'said'),
    [
        (2, 1, 'batches of 2 on 1 process, and the training goes on with 1 on 1 process'),
        (1, 2, 'batches of 1 on 1 process, and the training goes on with 2 on 1 process'),
    ],
)
def test_another_batch_size_goes_on_at_the_same_place(
    before: int, after: int, said: str, train: Callable, tmp_path: Path, capfd: Any
) -> None:
    plain = {'train_dataloader.dataset.augments': False, **EPOCHS}
    size = 'train_dataloader.batch_size'
    whole = train('whole', False, **{size: before, **plain})
    assert 'ExactResumeHook: ' not in ''.join(capfd.readouterr())
    # Two images of the second epoch were used.
    stop = tmp_path / f'whole/iter_{6 // before}.pth'
    rest = train('rest', False, stop, **{size: after, **plain})
    images = [torch.cat(witness.images) for witness in (whole, rest)]
    assert torch.equal(images[0][6:], images[1])
    assert said in ''.join(capfd.readouterr())


def test_another_number_of_processes_is_one_sentence(
    train: Callable, tmp_path: Path, capfd: Any
) -> None:
    train('whole', **EPOCHS)
    file = tmp_path / 'whole/epoch_1.pth'
    checkpoint = torch.load(file, weights_only=False)
    checkpoint['data_position']['processes'] = 8
    torch.save(checkpoint, file)
    assert len(train('rest', start=file, **EPOCHS).places) == 4
    said = ''.join(capfd.readouterr())
    assert 'batches of 2 on 8 processes, and the training goes on with 2 on 1 process' in said


@pytest.mark.parametrize('position', [None, 7, {}, {'images': -1}, {'images': '2'}])
def test_a_place_that_cannot_be_is_none(position: object) -> None:
    whole = {'batch_size': 2, 'processes': 1}
    position = {**whole, **position} if isinstance(position, dict) else position
    hook = ExactResumeHook()
    hook.after_load_checkpoint(None, {'data_position': position})
    assert hook._loaded is None
    hook.after_load_checkpoint(None, {'data_position': {**whole, 'images': 6}})
    assert hook._loaded['images'] == 6


@pytest.mark.parametrize('kind', ['between epochs', 'by iterations'])
@pytest.mark.parametrize('images', [10**15, 10**40])
def test_a_place_far_beyond_is_none(
    kind: str, images: int, train: Callable, tmp_path: Path, capfd: Any
) -> None:
    changes, by_epoch, stop = KINDS[kind]
    whole = train('whole', by_epoch, **changes)
    file = tmp_path / 'whole' / f'{"epoch" if by_epoch else "iter"}_{stop}.pth'
    checkpoint = torch.load(file, weights_only=False)
    checkpoint['data_position']['images'] = images
    checkpoint['accumulated_gradients'] = {'conv.weight': 'x'}
    torch.save(checkpoint, file)
    rest = train('rest', by_epoch, file, **changes)
    assert rest.places == whole.places[-len(rest.places) :]
    assert 'or its place in the data is damaged' in ''.join(capfd.readouterr())


@pytest.mark.parametrize('kind', ['between epochs', 'by iterations'])
def test_a_checkpoint_without_the_hook_is_one_sentence(
    kind: str, train: Callable, tmp_path: Path, capfd: Any
) -> None:
    changes, by_epoch, stop = KINDS[kind]
    whole = train('whole', by_epoch, **changes, custom_hooks=[])
    file = tmp_path / 'whole' / f'{"epoch" if by_epoch else "iter"}_{stop}.pth'
    rest = train('rest', by_epoch, file, **changes)
    assert rest.places == whole.places[-len(rest.places) :]
    assert 'is of a training without ExactResumeHook' in ''.join(capfd.readouterr())


def test_a_loader_that_is_no_config_is_resumed_too(
    train_both: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    from_config = Runner.from_cfg

    def with_loader(config: Config) -> Runner:
        runner = from_config(config)
        runner._train_dataloader = DataLoader(SmallData(), batch_size=2)
        return runner

    monkeypatch.setattr(Runner, 'from_cfg', with_loader)
    train_both(False, 3, **EPOCHS)


def test_data_without_a_sampler_is_one_sentence(
    tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stream(IterableDataset):
        def __iter__(self) -> Any:
            return iter([dict(inputs=image(0)[None]), dict(inputs=image(1)[None])])

        def __len__(self) -> int:
            return 2

    loader = DataLoader(Stream(), batch_size=None)
    # mmengine's hook that seeds samplers needs one.
    config = small_config(tmp_path, custom_hooks=[HOOK], default_hooks=dict(sampler_seed=None))
    monkeypatch.setattr(Runner, 'build_dataloader', staticmethod(lambda *args, **kwargs: loader))
    runner = Runner.from_cfg(config)
    for part in ('val', 'test'):
        setattr(runner, f'_{part}_loop', None)
    runner.train()
    assert runner.iter == 4
    assert 'the training data has no sampler' in ''.join(capfd.readouterr())


def test_older_versions_of_mmengine_ask_for_what_is_left_out() -> None:
    placed = _Placed(iter('ab'), 2)
    assert [next(placed) for _ in range(4)] == [None, None, 'a', 'b']
    placed = _Placed(iter('ab'), 0)
    placed.skip_iter(2)
    assert list(placed) == ['a', 'b']
