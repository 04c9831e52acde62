"""A training whose loss is not finite stops, and weights that are not are not saved."""

from pathlib import Path

import pytest
import torch
from mmengine.runner import Runner

from sn_openmmlab.errors import UsageError
from sn_openmmlab.hooks.finite_weights_hook import FiniteWeightsHook
from sn_openmmlab.hooks.non_finite_guard_hook import NonFiniteGuardHook
from tests.small_run import register, small_config


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    register(monkeypatch)
    found = Runner.from_cfg(small_config(tmp_path))
    found.register_hook(FiniteWeightsHook())
    return found


def spoil(runner: Runner) -> None:
    with torch.no_grad():
        runner.model.head.weight.fill_(float('nan'))


def test_loss_that_is_not_finite_stops_the_training(runner: Runner, tmp_path: Path) -> None:
    spoil(runner)
    with pytest.raises(UsageError, match='stops at iteration 1, since its loss is not finite'):
        runner.train()
    assert not list(tmp_path.glob('*.pth'))


def test_weights_that_are_not_finite_are_not_saved(runner: Runner) -> None:
    runner.train()
    spoil(runner)
    (hook,) = [hook for hook in runner.hooks if isinstance(hook, FiniteWeightsHook)]
    with pytest.raises(UsageError, match='saves no checkpoint of them'):
        hook.before_save_checkpoint(runner, {})


def test_finite_training_goes_on(runner: Runner, tmp_path: Path) -> None:
    runner.train()
    assert (tmp_path / 'epoch_2.pth').is_file()


def test_what_is_no_loss_and_does_not_train_may_be_infinite(runner: Runner, tmp_path: Path) -> None:
    infinite = torch.tensor(float('inf'))
    runner.model.register_parameter('mask', torch.nn.Parameter(infinite, requires_grad=False))
    runner.train()
    assert (tmp_path / 'epoch_2.pth').is_file()
    (hook,) = [hook for hook in runner.hooks if isinstance(hook, FiniteWeightsHook)]
    hook.after_train_iter(runner, 0, None, dict(loss=torch.ones(()), psnr=infinite))


def test_guard_says_more(runner: Runner) -> None:
    runner.register_hook(NonFiniteGuardHook())
    spoil(runner)
    with pytest.raises(UsageError, match='is the first layer whose output is not'):
        runner.train()


def test_step_that_a_scaler_leaves_out_stops_nothing(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook, loss = FiniteWeightsHook(), dict(loss=torch.tensor(float('inf')))
    runner.train()
    name = 'sn_openmmlab.hooks.finite_weights_hook.is_scaled'
    monkeypatch.setattr(name, lambda wrapper: True)
    hook.after_train_iter(runner, 0, None, loss)
    spoil(runner)
    with pytest.raises(UsageError, match='its loss is not finite'):
        hook.after_train_iter(runner, 0, None, loss)
