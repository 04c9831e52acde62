"""Two processes stop together, and leave out a step together."""

import math
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from mmengine.runner import Runner

from sn_openmmlab import convert_sync_switch_norm
from sn_openmmlab.errors import UsageError
from tests.faulty_run import MARK, faulty_config, register

WRAPPER = dict(type='MMDistributedDataParallel', device_ids=None, broadcast_buffers=False)


def _train(folder: str, rank: int, max_skips: int, fault: str, **changes: Any) -> dict[str, Any]:
    """Return what this rank says and holds in the end; only rank 1 has a faulty image."""
    config = faulty_config(
        Path(folder) / 'run',
        launcher='pytorch',
        model_wrapper_cfg=WRAPPER,
        env_cfg=dict(dist_cfg=dict(backend='gloo')),
        custom_hooks=[dict(type='NonFiniteGuardHook', max_skips=max_skips)],
        **{'model.fault': fault, 'train_dataloader.batch_size': 1, **changes},
    )
    runner = Runner.from_cfg(config)
    convert_sync_switch_norm(runner.model.module)
    said = ''
    try:
        runner.train()
    except UsageError as error:
        said = str(error)
    return dict(said=said, state=runner.model.module.state_dict())


def on_rank(rank: int, world: int) -> dict[str, dict[str, Any]]:
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world))
    # Rank 1 has the odd numbers.
    mark = dict(type='FaultyData', chosen=[5], kind=MARK)
    nan = dict(type='FaultyData', chosen=[3], kind=math.nan)
    data = 'train_dataloader.dataset'
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        register(patch)
        return dict(
            layer=_train(folder, rank, 0, 'layer', **{data: mark}),
            input=_train(folder, rank, 0, 'none', **{data: nan}),
            skipped=_train(folder, rank, 1, 'loss', **{data: mark}),
            accumulated=_train(
                folder,
                rank,
                1,
                'layer',
                **{data: mark, 'optim_wrapper.accumulative_counts': 2},
            ),
        )


@pytest.fixture(scope='module')
def ranks(run_ranks: Any) -> list[dict[str, dict[str, Any]]]:
    """Return what two ranks say and hold after four trainings."""
    return run_ranks(__file__, 2)


def test_all_ranks_stop_with_the_image_of_the_one(ranks: list) -> None:
    for place, iteration, number in (
        ('power (Power) is the first layer whose output is not', 3, 5),
        ('the input of the model is not finite', 2, 3),
    ):
        kind = 'layer' if number == 5 else 'input'
        first, second = (rank[kind]['said'] for rank in ranks)
        assert first == second
        assert f'stops at iteration {iteration}, since' in first
        assert f'{place}, on the image images/{number}.jpg; the last good checkpoint is' in first
        assert f'iter_{iteration - 1}.pth' in first


@pytest.mark.parametrize('kind', ['skipped', 'accumulated'])
def test_all_ranks_leave_out_the_same_step(kind: str, ranks: list) -> None:
    first, second = (rank[kind] for rank in ranks)
    assert first['said'] == second['said'] == ''
    for name, value in first['state'].items():
        assert torch.equal(value, second['state'][name]), name
        assert value.isfinite().all(), name
    # The statistics of one batch of each were taken back.
    assert first['state']['sn.num_batches_tracked'] == 3
