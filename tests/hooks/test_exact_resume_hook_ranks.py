"""The hook in a training of two processes."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from mmengine.dist import all_gather_object, barrier
from mmengine.hooks import Hook
from mmengine.runner import Runner

from tests.small_run import image, register, small_config

WRAPPER = dict(type='MMDistributedDataParallel', device_ids=None, broadcast_buffers=False)
# Buffers are averaged before a checkpoint of an epoch is written.
HOOKS = [dict(type='ExactResumeHook'), dict(type='SyncBuffersHook')]


class Factors(Hook):
    """Keep what the loading of each image multiplied it by."""

    def __init__(self) -> None:
        self.found: list[float] = []

    def after_train_iter(self, runner: Runner, data_batch: Any = None, **kwargs: Any) -> None:
        ratios = [data_batch['inputs'][0] / image(index) for index in range(4)]
        self.found += [ratio.mean().item() for ratio in ratios if ratio.std() < 1e-3]


def _train(folder: Path, start: Path | None = None) -> dict[str, Any]:
    """Return the weights of this rank after a training, and the factors that it drew."""
    config = small_config(
        folder,
        launcher='pytorch',
        model_wrapper_cfg=WRAPPER,
        custom_hooks=HOOKS,
        env_cfg=dict(dist_cfg=dict(backend='gloo')),
        train_cfg=dict(by_epoch=True, max_epochs=3),
        load_from=None if start is None else str(start),
        resume=start is not None,
        **{'train_dataloader.batch_size': 1},
    )
    runner = Runner.from_cfg(config)
    factors = Factors()
    runner.register_hook(factors)
    runner.train()
    barrier()  # The first rank may still write.
    return dict(state=runner.model.module.state_dict(), factors=factors.found)


def on_rank(rank: int, world: int) -> list[dict[str, Any]]:
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world))
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as own:
        register(patch)
        folder = Path(all_gather_object(own)[0])
        return [_train(folder / 'whole'), _train(folder / 'rest', folder / 'whole/epoch_1.pth')]


def test_each_rank_goes_on_as_if_there_had_been_no_stop(run_ranks: Any) -> None:
    ranks = run_ranks(__file__, 2)
    for whole, rest in ranks:
        assert len(whole['factors']) == 6
        assert rest['factors'] == whole['factors'][2:]
        for name, value in whole['state'].items():
            assert torch.equal(rest['state'][name], value), name
    # Every image on every rank draws numbers of its own.
    assert len({factor for whole, _ in ranks for factor in whole['factors']}) == 12
