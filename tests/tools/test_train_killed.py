"""tools/train.py loses no more than the time since the last checkpoint, however it ends."""

import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import torch
from mmengine.config import Config

from tests import faulty_training
from tests.faulty_training import losses, training_config

Train = Callable[..., CompletedProcess]


@pytest.fixture(scope='module')
def train(run_tool: Callable) -> Train:
    """Return a function that trains by a config; it checks the exit code."""

    def run(config: Config, *options: object, code: int = 0) -> CompletedProcess:
        file = Path(config.work_dir).with_suffix('.py')
        config.dump(file)
        return run_tool(faulty_training.__file__, file, *options, code=code)

    return run


@pytest.fixture(scope='module')
def whole(train: Train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the work folder of a training that nothing broke."""
    work_dir = tmp_path_factory.mktemp('whole') / 'run'
    train(training_config(work_dir))
    return work_dir


def check_equal_to(whole: Path, work_dir: Path, stops: list[int], resumes: list[int]) -> None:
    """Check that iterations were trained until stops, and after resumes, as without any stop."""
    expected, begin = [], 0
    for stop, resume in zip([*stops, 12], [*resumes, 12], strict=True):
        expected += losses(whole)[begin:stop]
        begin = resume
    assert losses(work_dir) == expected
    states = [torch.load(folder / 'rank0.pt', weights_only=True) for folder in (whole, work_dir)]
    torch.testing.assert_close(states[1], states[0], rtol=0, atol=0)


def checkpoints(work_dir: Path) -> list[str]:
    return sorted(file.name for file in work_dir.iterdir() if '.pth' in file.name)


@pytest.mark.parametrize(
    ('place', 'left', 'resumed'),
    [
        # Written, but under another name; whole, but not recorded; recorded, the older one there.
        ('fsync', ['iter_6.pth'], 6),
        ('replace', ['iter_6.pth'], 6),
        ('record', ['iter_6.pth', 'iter_8.pth'], 8),
        ('remove', ['iter_6.pth', 'iter_8.pth'], 8),
    ],
)
def test_kill_while_a_checkpoint_is_written(
    place: str, left: list[str], resumed: int, train: Train, whole: Path, tmp_path: Path
) -> None:
    kill = dict(type='SignalHook', signal='SIGKILL', iteration=7, place=place)
    train(training_config(tmp_path / 'run', kill), code=-9)
    assert checkpoints(tmp_path / 'run') == left
    for name in left:
        torch.load(tmp_path / 'run' / name, weights_only=True)

    done = train(training_config(tmp_path / 'run'), '--resume')
    assert f'resumed epoch: 0, iter: {resumed}' in done.stdout
    check_equal_to(whole, tmp_path / 'run', [8], [resumed])
    assert not list((tmp_path / 'run').glob('.*'))
    assert checkpoints(tmp_path / 'run')[0] == 'iter_12.pth'


def test_full_disk_ends_in_one_sentence(
    train: Train, whole: Path, tmp_path: Path, sentence: Callable
) -> None:
    large = {'model.size': 100_000}
    full = dict(type='FullDiskHook', iteration=7, size=200_000)
    config = training_config(tmp_path / 'run', full, **large)
    said = sentence(train(config, code=2).stderr)
    file = tmp_path / 'run/iter_8.pth'
    assert f'the training stops, since {file} cannot be written: File too large; the che' in said
    assert checkpoints(tmp_path / 'run') == ['iter_6.pth']

    done = train(training_config(tmp_path / 'run', **large), '--resume')
    assert 'resumed epoch: 0, iter: 6' in done.stdout
    assert losses(tmp_path / 'run')[8:] == losses(whole)[6:]


SIGTERM = dict(type='SignalHook', signal='SIGTERM', iteration=7)
EMA = dict(type='EMAHook', momentum=0.5)


def test_signal_kills_without_the_option(train: Train, tmp_path: Path) -> None:
    train(training_config(tmp_path / 'run', SIGTERM), code=-15)


@pytest.mark.parametrize(
    ('name', 'code', 'waits', 'group'),
    [
        ('SIGTERM', 143, [], False),
        ('SIGINT', 130, [], False),
        # Of a terminal and of torchrun at the same time.
        ('SIGINT', 130, [0.1], False),
        ('SIGTERM', 143, [], True),
    ],
)
def test_checkpoint_is_saved_on_a_signal(
    name: str, code: int, waits: list[float], group: bool, train: Train, whole: Path, tmp_path: Path
) -> None:
    hook = dict(SIGTERM, signal=name, waits=waits, group=group)
    workers = {'train_dataloader.num_workers': 1}
    config = training_config(tmp_path / 'run', hook, **workers)
    done = train(config, '--save-on-signal', code=code)
    file = tmp_path / 'run/preempted.pth'
    assert f'{name} came: the training ends after iteration 7, whose state is in {file}.' in (
        done.stdout
    )
    assert 'Traceback' not in done.stdout + done.stderr
    assert torch.load(file, weights_only=True)['meta']['iter'] == 7

    done = train(training_config(tmp_path / 'run', **workers), '--resume')
    assert f'Load checkpoint from {file}' in done.stdout
    check_equal_to(whole, tmp_path / 'run', [7], [7])


def test_second_signal_ends_at_once(train: Train, tmp_path: Path) -> None:
    config = training_config(tmp_path / 'run', dict(SIGTERM, waits=[1.1]))
    train(config, '--save-on-signal', code=-15)
    assert len(losses(tmp_path / 'run')) == 6
    assert checkpoints(tmp_path / 'run') == ['iter_6.pth']


@pytest.mark.parametrize('settings', [{}, dict(place='val', iteration=8)], ids=['train', 'val'])
def test_accumulated_gradients_and_averages_are_not_lost(
    settings: dict, train: Train, tmp_path: Path
) -> None:
    accumulated = {'optim_wrapper.accumulative_counts': 2}
    train(training_config(tmp_path / 'whole', EMA, **accumulated))
    config = training_config(tmp_path / 'run', EMA, dict(SIGTERM, **settings), **accumulated)
    done = train(config, '--save-on-signal', code=143)
    assert 'the training ends after iteration 8, whose state' in done.stdout
    train(training_config(tmp_path / 'run', EMA, **accumulated), '--resume')
    check_equal_to(tmp_path / 'whole', tmp_path / 'run', [8], [8])
    averages = [
        torch.load(tmp_path / name / 'iter_12.pth', weights_only=True)['state_dict']
        for name in ('whole', 'run')
    ]
    torch.testing.assert_close(averages[1], averages[0], rtol=0, atol=0)


@pytest.mark.parametrize('iteration', [5, 6])
def test_training_goes_on_within_an_epoch(iteration: int, train: Train, tmp_path: Path) -> None:
    by_epoch = {
        'train_cfg': dict(by_epoch=True, max_epochs=6, val_interval=2),
        'train_dataloader.sampler.type': 'DefaultSampler',
        'train_dataloader.dataset.augments': True,
        'default_hooks.checkpoint': dict(type='CheckpointHook', interval=1, max_keep_ckpts=1),
    }
    train(training_config(tmp_path / 'whole', **by_epoch))
    hook = dict(SIGTERM, iteration=iteration)
    train(training_config(tmp_path / 'run', hook, **by_epoch), '--save-on-signal', code=143)
    done = train(training_config(tmp_path / 'run', **by_epoch), '--resume')
    assert f'resumed epoch: 2, iter: {iteration}' in done.stdout
    check_equal_to(tmp_path / 'whole', tmp_path / 'run', [iteration], [iteration])
    assert checkpoints(tmp_path / 'run') == ['epoch_6.pth', 'preempted.pth']


def killed(config: Path, work_dir: Path, wait: float, env: dict[str, str]) -> list[tuple[int, str]]:
    """Resume, kill some time after the first iteration, and return the iterations in between."""
    file = work_dir / 'losses0.txt'
    before = len(losses(work_dir)) if file.exists() else 0
    command = [sys.executable, '-W', 'ignore', faulty_training.__file__, config, '--resume']
    with open(work_dir.with_suffix('.log'), 'a') as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
    limit = time.monotonic() + 200
    while not (file.exists() and len(losses(work_dir)) > before):
        assert process.poll() is None and time.monotonic() < limit
        time.sleep(0.02)
    time.sleep(wait)
    process.kill()
    process.wait()
    return losses(work_dir)[before:]


@pytest.mark.slow
@pytest.mark.parametrize('interval', [1, 5])
def test_ten_kills_at_random_moments(
    interval: int, train: Train, tool_env: dict[str, str], tmp_path: Path
) -> None:
    # 8 MB, so that writing takes most of the time.
    large = {'model.size': 2_000_000, 'train_cfg.max_iters': 10**6, 'train_cfg.val_interval': 10**6}
    every = {'default_hooks.checkpoint.interval': interval}
    config = tmp_path / 'run.py'
    training_config(tmp_path / 'run', **large, **every).dump(config)
    draw = random.Random(0)
    last, while_writing, trained = 0, 0, []
    for _ in range(10):
        trained.append(killed(config, tmp_path / 'run', draw.uniform(0, 1), tool_env))
        # The first iteration after the one that it went on from.
        assert last - interval < trained[-1][0][0] <= last + 1
        last = trained[-1][-1][0]
        while_writing += bool(list((tmp_path / 'run').glob('.*.unfinished')))
    assert while_writing
    seen = {number: loss for part in trained for number, loss in part}
    large['train_cfg.max_iters'] = last
    train(training_config(tmp_path / 'whole', **large))
    assert [(number, seen[number]) for number in sorted(seen)] == losses(tmp_path / 'whole')
    print(f'{while_writing} of 10 kills while a checkpoint was written, {last} iterations')
