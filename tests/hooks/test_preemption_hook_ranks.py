"""All processes of a training stop after the same iteration, and one of them saves it."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from mmengine.registry import HOOKS
from mmengine.runner import Runner

from tests.faulty_training import SignalHook
from tests.small_run import register, small_config

WRAPPER = dict(type='MMDistributedDataParallel', device_ids=None, broadcast_buffers=False)


def _train(folder: str, **settings: Any) -> dict[str, Any]:
    """Return the exit code of this rank, its iteration, its weights and what was saved."""
    config = small_config(
        Path(folder),
        launcher='pytorch',
        model_wrapper_cfg=WRAPPER,
        env_cfg=dict(dist_cfg=dict(backend='gloo')),
        custom_hooks=[
            dict(type='PreemptionHook'),
            dict(type='SignalHook', signal='SIGTERM', **settings),
        ],
        **{'train_dataloader.batch_size': 1},
    )
    runner = Runner.from_cfg(config)
    code = 0
    try:
        runner.train()
    except SystemExit as error:
        code = error.code
        runner.call_hook('after_train')
    file = Path(folder) / 'preempted.pth'
    saved = torch.load(file, weights_only=True) if file.exists() else None
    return dict(
        code=code,
        iteration=runner.iter,
        state=runner.model.module.state_dict(),
        saved=saved and saved['state_dict'],
        meta=saved and {name: saved['meta'][name] for name in ('epoch', 'iter')},
    )


def on_rank(rank: int, world: int) -> dict[str, dict[str, Any]]:
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world))
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as own:
        register(patch)
        patch.setitem(HOOKS.module_dict, 'SignalHook', SignalHook)
        # The same on both ranks.
        folders = [own]
        torch.distributed.broadcast_object_list(folders)
        folder = folders[0]
        return dict(
            train=_train(f'{folder}/train', iteration=2, ranks=(1,)),
            val=_train(f'{folder}/val', iteration=2, place='val', ranks=(1,)),
        )


@pytest.fixture(scope='module')
def ranks(run_ranks: Any) -> list[dict[str, dict[str, Any]]]:
    """Return what two ranks hold after two trainings."""
    return run_ranks(__file__, 2)


def test_a_signal_to_one_rank_stops_both_after_the_same_iteration(ranks: list) -> None:
    first, second = (rank['train'] for rank in ranks)
    # The loop has not counted the second iteration yet.
    assert [(x['code'], x['iteration']) for x in (first, second)] == [(143, 1), (143, 1)]
    assert first['meta'] == second['meta'] == dict(epoch=0, iter=2)
    for name, value in first['saved'].items():
        torch.testing.assert_close(value, first['state'][name], rtol=0, atol=0)


def test_a_signal_to_one_rank_ends_a_validation_of_both(ranks: list) -> None:
    first, second = (rank['val'] for rank in ranks)
    assert [(x['code'], x['iteration']) for x in (first, second)] == [(143, 2), (143, 2)]
    assert first['meta'] == second['meta'] == dict(epoch=1, iter=2)
