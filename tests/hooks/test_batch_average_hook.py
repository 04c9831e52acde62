"""The hook sets statistics before they are used or saved, and changes nothing else."""

import importlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.runner import Runner

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.errors.sentences import building
from tests.small_run import expected_statistics, register, small_config

# One image per batch, as it is: then the order does not matter.
SINGLE = {'train_dataloader.dataset.augments': False, 'train_dataloader.batch_size': 1}
EMA = dict(type='EMAHook', momentum=0.5)
# No batch is left of four images in batches of eight.
EMPTY = {'train_dataloader.batch_size': 8, 'train_dataloader.drop_last': True}
ITERATIONS = {
    'train_cfg': dict(by_epoch=False, max_iters=5, val_interval=2),
    'train_dataloader.sampler.type': 'InfiniteSampler',
}


def _hooks(*others: Any, **settings: Any) -> dict[str, Any]:
    return dict(custom_hooks=[*others, dict(type='BatchAverageHook', num_batches=8, **settings)])


def _saving(**settings: Any) -> dict[str, Any]:
    return {'default_hooks.checkpoint': dict(type='CheckpointHook', **settings)}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Runner]:
    """Return a function that trains by a config with changes, in a folder of its own."""
    register(monkeypatch)

    def train(changes: Mapping[str, Any], folder: str = 'run') -> Runner:
        runner = Runner.from_cfg(small_config(tmp_path / folder, **changes))
        runner.train()
        return runner

    return train


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list which will hold the lines that the hook logs."""
    lines: list[str] = []
    monkeypatch.setattr(
        'sn_openmmlab.hooks.batch_average_hook.print_log',
        lambda message, logger: lines.append(message),
    )
    return lines


def _check_statistics(state: Mapping[str, torch.Tensor], name: str = '') -> None:
    bare = {key.removeprefix(name): value for key, value in state.items()}
    mean, var = expected_statistics(bare)
    torch.testing.assert_close(bare['sn.running_mean'], mean)
    torch.testing.assert_close(bare['sn.running_var'], var)


def test_validation_and_checkpoints_have_the_statistics_of_their_weights(
    run: Callable, logged: list[str], tmp_path: Path
) -> None:
    runner = run({**SINGLE, **_hooks()})
    for epoch in (1, 2):
        _check_statistics(_load(tmp_path / f'run/epoch_{epoch}.pth')['state_dict'])
    # One pass serves the checkpoint and the validation.
    assert logged == ['Batch average of the model: 1 layers, 4 batches, 4 images.'] * 2
    bias = [
        _load(tmp_path / f'run/epoch_{epoch}.pth')['state_dict']['conv.bias'] for epoch in (1, 2)
    ]
    assert len(runner.val_evaluator.metrics[0].kept) == 2
    for evaluated, shift in zip(runner.val_evaluator.metrics[0].kept, bias, strict=True):
        _check_evaluated(evaluated, shift)


def _load(file: Path) -> dict[str, Any]:
    return torch.load(file, weights_only=True)


def _check_evaluated(evaluated: torch.Tensor, bias: torch.Tensor) -> None:
    """Check that an evaluation used the batch average of the weights that it had."""
    weight, *found = evaluated.split([8, 4, 4])
    expected = expected_statistics({'conv.weight': weight.reshape(4, 2, 1, 1), 'conv.bias': bias})
    torch.testing.assert_close(tuple(found), expected)


@pytest.mark.parametrize(
    'changes',
    [
        {},
        {'train_dataloader.num_workers': 1},
        {'custom_hooks': [EMA]},
        {**ITERATIONS, **_saving(by_epoch=False, interval=1)},
    ],
    ids=['epochs', 'workers', 'EMA', 'iterations'],
)
def test_training_with_the_hook_is_the_same_bit_for_bit(
    changes: dict, run: Callable, logged: list[str]
) -> None:
    without = _outcome(run(changes))
    hooks = changes.get('custom_hooks', [])
    runner = run({**changes, **_hooks(*hooks, batch_norm=True)}, 'hooked')
    assert logged
    found = _outcome(runner)
    for name, value in without.items():
        assert np.array_equal(found[name], value) == ('running' not in name), name


def _outcome(runner: Runner) -> dict[str, Any]:
    """Return what a training leads to: weights, buffers, optimizer, losses, random numbers."""
    loss = runner.message_hub.log_scalars['train/loss'].data[0]
    ema = [hook.ema_model.module for hook in runner.hooks if hasattr(hook, 'ema_model')]
    models = {'': runner.model, **{f'ema{i} ': model for i, model in enumerate(ema)}}
    optimizer = runner.optim_wrapper.state_dict()
    states = {
        f'{prefix}{name}': value.numpy()
        for prefix, model in models.items()
        for name, value in model.state_dict().items()
    }
    return dict(**states, loss=loss, optimizer=str(optimizer), random=torch.rand(3).numpy())


@pytest.mark.parametrize('updates', [False, True])
def test_ema_is_evaluated_and_saved_with_the_statistics_of_its_own(
    updates: bool, run: Callable, logged: list[str], tmp_path: Path
) -> None:
    ema = dict(EMA, update_buffers=updates)
    saving = _saving(interval=1, save_best='score', rule='greater')
    runner = run({**SINGLE, **saving, **_hooks(ema)})
    assert len(logged) == 4
    assert logged[1].startswith('Batch average of the averaged weights of EMAHook: 1 layers')
    (best,) = (tmp_path / 'run').glob('best_score_epoch_*.pth')
    files = [tmp_path / 'run/epoch_1.pth', tmp_path / 'run/epoch_2.pth', best]
    for checkpoint in map(_load, files):
        state, trained = checkpoint['state_dict'], checkpoint['ema_state_dict']
        assert not torch.equal(state['conv.weight'], trained['module.conv.weight'])
        _check_statistics(state)
        _check_statistics(trained, 'module.')
    kept = runner.val_evaluator.metrics[0].kept
    for evaluated, file in zip(kept, files[:2], strict=True):
        state = _load(file)['state_dict']
        assert torch.equal(evaluated[:8], state['conv.weight'].flatten())
        _check_evaluated(evaluated, state['conv.bias'])
    (model,) = (hook.ema_model for hook in runner.hooks if hasattr(hook, 'ema_model'))
    assert model.update_buffers == updates
    _check_statistics(runner.model.state_dict())


def test_ema_that_evaluates_both_weights_uses_the_statistics_of_each(
    run: Callable, logged: list[str]
) -> None:
    """MMPretrain's hook evaluates the trained weights again, when it swapped them back."""
    pytest.importorskip('mmpretrain')
    importlib.import_module('mmpretrain.engine')
    ema = dict(EMA, type='mmpretrain.EMAHook', evaluate_on_ema=True, evaluate_on_origin=True)
    runner = run({**SINGLE, 'train_cfg.max_epochs': 1, **_hooks(ema)})
    (hook,) = (hook for hook in runner.hooks if hasattr(hook, 'ema_model'))
    averaged, trained = runner.val_evaluator.metrics[0].kept
    _check_evaluated(averaged, hook.ema_model.module.conv.bias.detach())
    _check_evaluated(trained, runner.model.conv.bias.detach())
    assert not torch.equal(averaged[:8], trained[:8])


@pytest.mark.parametrize(
    ('saving', 'passes'),
    [
        (dict(by_epoch=False, interval=2), 3),  # after 2, 4 and, as the last, 5
        (dict(by_epoch=False, interval=2, save_begin=4), 2),
        (dict(by_epoch=False, interval=2, save_last=False), 2),
        (dict(by_epoch=False, interval=-1, save_last=False), 0),
        (dict(by_epoch=True, interval=1), 1),
    ],
)
def test_checkpoints_by_iterations_are_preceded_by_a_pass(
    saving: dict, passes: int, run: Callable, logged: list[str], tmp_path: Path
) -> None:
    changes = {**ITERATIONS, **SINGLE, **_saving(**saving), **_hooks(EMA)}
    changes.update(val_dataloader=None, val_cfg=None, val_evaluator=None)
    run(changes)
    assert len(logged) == 2 * passes
    files = list((tmp_path / 'run').glob('*.pth'))
    assert len(files) == passes
    for checkpoint in map(_load, files):
        _check_statistics(checkpoint['state_dict'])
        _check_statistics(checkpoint['ema_state_dict'], 'module.')


@pytest.mark.parametrize('others', [[], [EMA]], ids=['alone', 'EMA'])
def test_a_resumed_training_ends_like_one_without_a_break(
    others: list, run: Callable, logged: list[str], tmp_path: Path
) -> None:
    # Without what is random, which mmengine does not resume.
    changes = {**SINGLE, **_hooks(*others), 'train_dataloader.sampler.shuffle': False}
    changes['model'] = dict(type='SmallModel', drops=False)
    whole = run(changes)
    first = tmp_path / 'run/epoch_1.pth'
    resumed = run({**changes, 'load_from': str(first), 'resume': True}, 'resumed')
    assert len(logged) == 3 * (1 + len(others))
    found, expected = _outcome(resumed), _outcome(whole)
    for name in expected.keys() - {'loss', 'random'}:
        assert np.array_equal(found[name], expected[name]), name


def test_a_test_of_a_checkpoint_makes_a_pass(
    run: Callable, logged: list[str], tmp_path: Path
) -> None:
    run({**SINGLE, 'train_cfg.max_epochs': 1})
    file = tmp_path / 'run/epoch_1.pth'
    config = small_config(tmp_path / 'test', load_from=str(file), **SINGLE, **_hooks())
    runner = Runner.from_cfg(config)
    runner.test()
    (evaluated,) = runner.test_evaluator.metrics[0].kept
    _check_evaluated(evaluated, _load(file)['state_dict']['conv.bias'])
    # The loop of a training is not built for it.
    assert isinstance(runner._train_loop, dict)
    # Other weights need another pass.
    runner.load_checkpoint(str(file))
    runner.test()
    assert len(logged) == 2


@pytest.mark.filterwarnings('ignore:No batch reached any')
def test_a_hook_that_finds_nothing_to_set_says_so(run: Callable, logged: list[str]) -> None:
    run({**_hooks(), 'train_cfg.max_epochs': 1, **EMPTY})
    assert logged == [
        'Batch average of the model: no layer trains with statistics of the batch, or no batch '
        'reached one.'
    ]


@pytest.mark.parametrize(
    ('settings', 'sentence'),
    [
        (dict(num_batches=0), 'num_batches is 0, but must be at least 1'),
        (dict(num_batches='all'), "num_batches must be a whole number, not 'all'"),
        (dict(variance='median'), "variance must be 'mean' or 'pooled', not 'median'"),
        (dict(batch_norm='yes'), "batch_norm must be True or False, not 'yes'"),
    ],
)
def test_wrong_arguments_are_one_sentence(
    settings: dict, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch)
    config: Config = small_config(tmp_path / 'run')
    config.custom_hooks = [dict(type='BatchAverageHook', **settings)]
    with pytest.raises(UsageError, match=re.escape(sentence)), building('the config'):
        Runner.from_cfg(config)
