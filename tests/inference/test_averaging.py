"""The batch average of a runner's model: its values, and all that stays as it was."""

import copy
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from mmengine.logging import HistoryBuffer, MessageHub
from mmengine.runner import Runner
from torch.distributed.fsdp import FullyShardedDataParallel

from sn_openmmlab.errors import UsageError
from sn_openmmlab.inference import averaging
from sn_openmmlab.inference.averaging import average_over_training
from tests.small_run import SmallData, SmallModel, expected_statistics, register, small_config

SINGLE = {'train_dataloader.dataset.augments': False, 'train_dataloader.batch_size': 1}


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Runner]:
    """Return a function that builds a runner with changes of the config."""
    register(monkeypatch)
    return lambda **changes: Runner.from_cfg(small_config(tmp_path / 'run', **changes))


def _average(runner: Runner, number: int = 9, batch_norm: bool = False) -> averaging.Averaged:
    return average_over_training(runner.model, runner, number, 'mean', batch_norm)


def _everything(runner: Runner) -> dict[str, Any]:
    """Return copies of what a batch average must leave alone."""
    state = {
        name: value.clone()
        for name, value in runner.model.state_dict().items()
        if name not in ('sn.running_mean', 'sn.running_var')
    }
    hub = copy.deepcopy(runner.message_hub.state_dict())
    return dict(
        state=state,
        modes=[module.training for module in runner.model.modules()],
        steps=list(runner.model.steps),
        taken=runner.train_dataloader.dataset.taken,
        info=hub['runtime_info'],
        scalars={name: value.data for name, value in hub['log_scalars'].items()},
        random=(random.getstate(), np.random.get_state(), torch.get_rng_state()),
        epoch=runner.train_dataloader.sampler.epoch,
    )


def _check_equal(found: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            _check_equal(found[name], value)
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _check_equal(one, other)
    elif isinstance(expected, torch.Tensor):
        assert torch.equal(found, expected)
    else:
        assert np.array_equal(found, expected)


def test_values_are_the_averages_over_the_batches_and_are_counted(build: Callable) -> None:
    runner = build(**SINGLE)
    done = _average(runner)
    assert done == averaging.Averaged(['sn'], batches=4, images=4)
    mean, var = expected_statistics(runner.model.state_dict())
    torch.testing.assert_close(runner.model.sn.running_mean, mean)
    torch.testing.assert_close(runner.model.sn.running_var, var)


def test_batch_norm_on_demand(build: Callable) -> None:
    runner = build()
    assert _average(runner, 1, batch_norm=True) == averaging.Averaged(['sn', 'bn'], 1, 2)
    assert not torch.equal(runner.model.bn.running_mean, torch.zeros(4))


def test_two_passes_give_the_same_bit_for_bit(build: Callable) -> None:
    found = []
    for workers in (0, 0, 1, 1):
        runner = build(**{'train_dataloader.num_workers': workers})
        _average(runner)
        # What was drawn before does not matter.
        torch.rand(3)
        found.append(runner.model.sn.running_var)
    _check_equal(found[1::2], found[::2])


@pytest.mark.parametrize('workers', [0, 1])
def test_all_else_stays_as_it_was(workers: int, build: Callable) -> None:
    runner = build(**{'train_dataloader.num_workers': workers})
    runner.train()
    statistics = runner.model.sn.running_mean.clone()
    before = _everything(runner)
    _average(runner)
    assert not torch.equal(runner.model.sn.running_mean, statistics)
    _check_equal(_everything(runner), before)


@pytest.mark.parametrize('failing', [(SmallData, '__getitem__'), (SmallModel, 'forward')])
def test_after_an_exception_all_is_as_it_was(
    failing: tuple[type, str], build: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = build()
    runner.train()
    before, statistics = _everything(runner), runner.model.sn.running_mean.clone()
    kind, name = failing
    method, calls = getattr(kind, name), []

    def fail_at_last(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return method(*args, **kwargs)

    monkeypatch.setattr(kind, name, fail_at_last)
    with pytest.raises(KeyboardInterrupt):
        _average(runner)
    monkeypatch.undo()
    assert torch.equal(runner.model.sn.running_mean, statistics)
    _check_equal(_everything(runner), before)


def test_models_can_look_up_how_far_the_training_is(
    build: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BoxInst and the data preprocessor of YOLOX do, also where nothing was trained."""
    looked_up, forward = [], SmallModel.forward

    def look_up(model: SmallModel, inputs: torch.Tensor, mode: str) -> Any:
        hub = MessageHub.get_current_instance()
        looked_up.append((hub.get_info('iter'), hub.get_info('epoch')))
        return forward(model, inputs, mode)

    monkeypatch.setattr(SmallModel, 'forward', look_up)
    runner = build()
    _average(runner, 1)
    assert looked_up == [(0, 0)]
    assert not {'iter', 'epoch'} & set(runner.message_hub.runtime_info)


def test_what_models_log_in_a_pass_is_not_in_the_log_of_the_training(
    build: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward, seen = SmallModel.forward, []

    def log(model: SmallModel, inputs: torch.Tensor, mode: str) -> Any:
        hub = MessageHub.get_current_instance()
        seen.append(len(hub.log_scalars.get('own', HistoryBuffer()).data[0]))
        hub.update_scalar('own', len(seen))
        hub.update_info('calls', len(seen))
        return forward(model, inputs, mode)

    monkeypatch.setattr(SmallModel, 'forward', log)
    runner = build(val_dataloader=None, val_cfg=None, val_evaluator=None)
    runner.train()
    before, buffer = _everything(runner), runner.message_hub.get_scalar('own')
    _average(runner)
    # A model reads in a pass what it logged before.
    assert seen == list(range(6))
    _check_equal(_everything(runner), before)
    assert runner.message_hub.get_scalar('own') is buffer
    assert runner.message_hub.get_info('calls') == 4


def test_a_sharded_model_is_refused_in_one_sentence(build: Callable) -> None:
    sharded = FullyShardedDataParallel.__new__(FullyShardedDataParallel)
    with pytest.raises(UsageError, match='cannot copy a model that is sharded'):
        average_over_training(sharded, build(), 1, 'mean', False)


def test_the_progress_bar_is_for_terminals(
    build: Callable, capfd: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = build()
    capfd.readouterr()
    _average(runner)
    assert capfd.readouterr() == ('', '')
    monkeypatch.setenv('FORCE_COLOR', '1')
    _average(runner)
    assert 'Batch average' in capfd.readouterr().err
