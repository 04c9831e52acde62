"""Checkpoints take the place of older ones at once, which are removed only then."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.fileio import LocalBackend, get_file_backend, register_backend
from mmengine.runner import Runner

from sn_openmmlab.errors import UsageError
from sn_openmmlab.hooks import atomic_checkpoint_hook
from tests.small_run import register, small_config


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Runner]:
    """Return a function that trains by a config with the hook and changes."""
    register(monkeypatch)

    def train(**saving: Any) -> Runner:
        hooks = {'default_hooks.checkpoint': dict(type='CheckpointHook', **saving)}
        config = small_config(
            tmp_path / 'run', custom_hooks=[dict(type='AtomicCheckpointHook')], **hooks
        )
        runner = Runner.from_cfg(config)
        runner.train()
        return runner

    yield train
    register_backend('local', LocalBackend, force=True, prefixes='')


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Return a list which will hold what takes its place or is removed, in order."""
    done: list[tuple[str, str]] = []
    replace, remove = os.replace, os.remove

    def replaced(source: Any, target: Any) -> None:
        done.append(('written', Path(target).name))
        replace(source, target)

    def removed(file: Any) -> None:
        done.append(('removed', Path(file).name))
        remove(file)

    monkeypatch.setattr(os, 'replace', replaced)
    monkeypatch.setattr(os, 'remove', removed)
    return done


def test_the_older_one_goes_last(run: Callable, events: list) -> None:
    run(interval=1, max_keep_ckpts=1)
    assert events == [
        ('written', 'epoch_1.pth'),
        ('written', 'epoch_2.pth'),
        ('removed', 'epoch_1.pth'),
    ]


def test_the_best_one_before_goes_last(run: Callable, events: list) -> None:
    run(interval=-1, save_last=False, save_best='score', rule='greater')
    (first, second), others = events[:2], events[2:]
    assert first == ('written', 'best_score_epoch_1.pth')
    # Whether the second is better, is known from the first only.
    run_on = [('written', 'best_score_epoch_2.pth'), ('removed', 'best_score_epoch_1.pth')]
    assert [second, *others] == run_on


def test_a_best_one_that_is_written_anew_stays(run: Callable, tmp_path: Path) -> None:
    runner = run(interval=1, save_best='score', rule='less')
    (hook,) = (x for x in runner.hooks if hasattr(x, 'best_ckpt_path'))
    best = Path(hook.best_ckpt_path)
    runner.message_hub.update_info('best_score', float('inf'))
    # As after a resume, when the same epoch is validated again.
    runner.train_loop._epoch = int(best.stem[-1])
    runner.call_hook('after_val_epoch', metrics=dict(score=-9.0))
    assert Path(hook.best_ckpt_path) == best
    assert torch.load(best, weights_only=True)['message_hub']['runtime_info']['best_score'] == -9


def test_what_a_killed_training_left_is_removed(run: Callable, tmp_path: Path) -> None:
    (tmp_path / 'run').mkdir()
    left = tmp_path / 'run/.0123456789abcdef.unfinished'
    others = [tmp_path / 'run' / name for name in ('.note.unfinished', 'iter_7.pth')]
    for file in (left, *others):
        file.touch()
    run(interval=1)
    assert not left.exists()
    assert all(file.exists() for file in others)


def test_a_backend_of_somebody_else_stays(run: Callable) -> None:
    class Theirs(LocalBackend):
        pass

    register_backend('local', Theirs, force=True, prefixes='')
    run(interval=1)
    assert type(get_file_backend('.')) is Theirs


def test_processes_that_start_apart_are_refused(
    run: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic_checkpoint_hook, 'all_gather_object', lambda own: [own, 200])
    said = r'different iterations, 0 and 200: all machines need the checkpoints, so share the work'
    with pytest.raises(UsageError, match=said):
        run(interval=1)
