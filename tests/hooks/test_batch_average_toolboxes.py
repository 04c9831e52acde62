"""The hook in trainings of the three toolboxes: what it sets, and that nothing else changes."""

from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.config import Config
from mmengine.runner import Runner
from torch.nn.modules.batchnorm import _BatchNorm

from sn_openmmlab import SwitchNorm


@pytest.fixture(params=['detection', 'segmentation', 'classification'])
def config(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Config:
    """Return the tiny config of a toolbox for two iterations, each with a checkpoint not saved."""
    config = Config.fromfile(request.getfixturevalue(f'{request.param}_config'))
    config.work_dir, config.experiment_name = str(tmp_path), f'{request.param} {tmp_path.name}'
    config.train_cfg = dict(type='IterBasedTrainLoop', max_iters=2)
    config.train_dataloader.sampler = dict(type='InfiniteSampler')
    config.param_scheduler = None
    for name in ('val_dataloader', 'val_evaluator', 'val_cfg'):
        config[name] = None
    config.default_hooks.checkpoint = dict(type='CheckpointHook', by_epoch=False, interval=1)
    monkeypatch.setattr(Runner, 'save_checkpoint', lambda *args, **kwargs: None)
    monkeypatch.setattr('mmengine.runner.runner.collect_env', dict)
    return config


def _train(config: Config, hooks: list[dict]) -> tuple[Runner, dict[str, torch.Tensor]]:
    config.custom_hooks = hooks
    runner = Runner.from_cfg(config)
    runner.train()
    state: dict[str, Any] = runner.model.state_dict()
    losses = runner.message_hub.log_scalars['train/loss'].data[0]
    return runner, dict(state, losses=torch.tensor(losses), drawn=torch.rand(3))


def test_training_with_the_hook_is_the_same_bit_for_bit(
    config: Config, recwarn: pytest.WarningsRecorder
) -> None:
    _, without = _train(config, [])
    config.experiment_name += ' hooked'
    runner, hooked = _train(config, [dict(type='BatchAverageHook', num_batches=1, batch_norm=True)])
    layers = {
        name
        for name, layer in runner.model.named_modules()
        if isinstance(layer, SwitchNorm | _BatchNorm)
    }
    assert layers
    statistics = {f'{name}.running_{kind}' for name in layers for kind in ('mean', 'var')}
    changed = {name for name in without if not torch.equal(hooked[name], without[name])}
    # All layers are reached: those of a detector's RoI head, too.
    assert changed == statistics
    assert not [w for w in recwarn if 'No batch reached' in str(w.message)]
