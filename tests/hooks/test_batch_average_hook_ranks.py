"""The hook in a training of two processes, with EMA."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from mmengine.runner import Runner

from tests.small_run import expected_statistics, register, small_config

EMA = dict(type='EMAHook', momentum=0.5)
HOOK = dict(type='BatchAverageHook', num_batches=8)
WRAPPER = dict(type='MMDistributedDataParallel', device_ids=None, broadcast_buffers=False)


def _train(folder: str, hooks: list[dict], **changes: Any) -> dict[str, Any]:
    """Return the weights of this rank after a training, and what it draws then."""
    config = small_config(
        Path(folder) / 'run',
        launcher='pytorch',
        model_wrapper_cfg=WRAPPER,
        custom_hooks=hooks,
        env_cfg=dict(dist_cfg=dict(backend='gloo')),
        **{'train_dataloader.batch_size': 1, **changes},
    )
    runner = Runner.from_cfg(config)
    runner.train()
    ema = next(hook.ema_model.module for hook in runner.hooks if hasattr(hook, 'ema_model'))
    return dict(model=runner.model.module.state_dict(), ema=ema.state_dict(), drawn=torch.rand(3))


def on_rank(rank: int, world: int) -> list[dict[str, Any]]:
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world))
    plain = {'train_dataloader.dataset.augments': False}
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        register(patch)
        return [
            _train(folder, [EMA]),
            _train(folder, [EMA, HOOK]),
            _train(folder, [EMA, HOOK], **plain),
        ]


@pytest.fixture(scope='module')
def ranks(run_ranks: Any) -> list[list[dict[str, Any]]]:
    """Return what two ranks hold after three trainings."""
    return run_ranks(__file__, 2)


def test_training_with_the_hook_is_the_same_bit_for_bit(ranks: list) -> None:
    for without, hooked, _ in ranks:
        assert torch.equal(hooked['drawn'], without['drawn'])
        for part in ('model', 'ema'):
            for name, value in without[part].items():
                is_set = name in ('sn.running_mean', 'sn.running_var')
                assert torch.equal(hooked[part][name], value) != is_set, name


@pytest.mark.parametrize('part', ['model', 'ema'])
def test_all_ranks_have_the_averages_over_the_images_of_all(part: str, ranks: list) -> None:
    first, second = (rank[2][part] for rank in ranks)
    assert torch.equal(first['conv.weight'], second['conv.weight'])
    mean, var = expected_statistics(first)
    torch.testing.assert_close(first['sn.running_mean'], mean)
    torch.testing.assert_close(first['sn.running_var'], var)
    for name in ('sn.running_mean', 'sn.running_var'):
        assert torch.equal(first[name], second[name])
