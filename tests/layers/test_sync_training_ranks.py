"""Two processes train as one does on the whole batch, and SN's buffers are like BatchNorm's."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from mmengine.hooks import Hook
from mmengine.registry import HOOKS, MODELS
from mmengine.runner import Runner
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests.small_run import SmallModel, register, small_config

EMA = dict(type='EMAHook', momentum=0.5, update_buffers=True)
EXACT = dict(rtol=0, atol=0)


class OnlySN(SmallModel):
    """The small model with no norm but SN, whose activations may be computed twice.

    Args:
        reentrant: the kind of checkpointing, or None for none.
    """

    def __init__(self, reentrant: bool | None = None) -> None:
        super().__init__(drops=False)
        self.bn = nn.Identity()
        self.reentrant = reentrant

    def forward(self, inputs: Tensor, mode: str) -> Any:
        if self.reentrant is None or mode == 'predict':
            return super().forward(inputs, mode)
        y = self.conv(inputs)
        y = checkpoint(lambda x: self.head(self.sn(x)), y, use_reentrant=self.reentrant)
        return dict(loss=y.square().mean())


class Losses(Hook):
    """Keep the loss of each iteration."""

    def __init__(self) -> None:
        self.kept: list[Tensor] = []

    def after_train_iter(self, runner: Runner, *args: Any, outputs: Any, **kwargs: Any) -> None:
        self.kept.append(outputs['loss'])


def _train(world: int, folder: str, wrapper: Any = None, **changes: Any) -> dict[str, Any]:
    """Return the losses and the state after five epochs of two steps of two images."""
    settings = {
        'train_cfg': dict(by_epoch=True, max_epochs=5, val_interval=9),
        'train_dataloader.dataset.augments': False,
        'train_dataloader.batch_size': 2 // world,
        'sync_bn': 'torch',
        **changes,
    }
    hooks = [dict(type='Losses'), dict(type='NormCheckHook'), *settings.pop('custom_hooks', [])]
    if world > 1:
        settings.update(
            launcher='pytorch',
            model_wrapper_cfg=dict(
                type='MMDistributedDataParallel',
                device_ids=None,
                **{'broadcast_buffers': False, **(wrapper or {})},
            ),
            env_cfg=dict(dist_cfg=dict(backend='gloo')),
        )
    runner = Runner.from_cfg(small_config(Path(folder), custom_hooks=hooks, **settings))
    runner.train()
    model = runner.model.module if world > 1 else runner.model
    found: dict[str, Any] = dict(state=model.state_dict())
    for hook in runner.hooks:
        if isinstance(hook, Losses):
            found['losses'] = torch.stack(hook.kept)
        if hasattr(hook, 'ema_model'):
            found['ema'] = hook.ema_model.module.state_dict()
    return found


def on_rank(rank: int, world: int) -> dict[str, Any]:
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world))
    only_sn = {'model': dict(type='OnlySN')}
    twice = {'optim_wrapper.accumulative_counts': 2}
    kept = [dict(type='SyncBuffersHook')]
    # BatchNorm is that of the small model, which is not synchronised.
    both = {'train_cfg': dict(by_epoch=True, max_epochs=1, val_interval=9), 'sync_bn': None}
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        register(patch)
        patch.setitem(MODELS.module_dict, 'OnlySN', OnlySN)
        patch.setitem(HOOKS.module_dict, 'Losses', Losses)
        found = dict(
            plain=_train(world, folder, custom_hooks=[EMA], **only_sn),
            accumulated=_train(world, folder, **only_sn, **twice),
            reentrant=_train(world, folder, model=dict(type='OnlySN', reentrant=True)),
            recomputed=_train(world, folder, model=dict(type='OnlySN', reentrant=False)),
        )
        if world > 1:
            found.update(
                apart=_train(world, folder, **both),
                averaged=_train(world, folder, custom_hooks=kept, **both),
                broadcast=_train(world, folder, dict(broadcast_buffers=True), **both),
            )
        return found


@pytest.fixture(scope='module')
def ranks(run_ranks: Any) -> list[dict[str, Any]]:
    """Return what two ranks hold after their trainings."""
    return run_ranks(__file__, 2)


@pytest.fixture(scope='module')
def whole(run_ranks: Any) -> dict[str, Any]:
    """Return what one process with the whole batch holds."""
    return run_ranks(__file__, 1)[0]


@pytest.mark.parametrize('kind', ['plain', 'accumulated', 'reentrant', 'recomputed'])
def test_loss_curve_and_weights_are_those_of_the_whole_batch(
    kind: str, ranks: list, whole: dict[str, Any]
) -> None:
    curve = torch.stack([rank[kind]['losses'] for rank in ranks]).mean(0)
    assert whole[kind]['losses'][-1] < 0.5 * whole[kind]['losses'][0]
    torch.testing.assert_close(curve, whole[kind]['losses'])
    for part in [part for part in ('state', 'ema') if part in whole[kind]]:
        for name, value in whole[kind][part].items():
            torch.testing.assert_close(ranks[0][kind][part][name], value, msg=name)
            torch.testing.assert_close(
                ranks[1][kind][part][name], ranks[0][kind][part][name], **EXACT
            )


def test_sync_buffers_hook_averages_the_buffers_of_sn_and_batch_norm_alike(ranks: list) -> None:
    for norm in ('sn', 'bn'):
        for name in ('running_mean', 'running_var', 'num_batches_tracked'):
            apart = [rank['apart']['state'][f'{norm}.{name}'] for rank in ranks]
            averaged = [rank['averaged']['state'][f'{norm}.{name}'] for rank in ranks]
            assert torch.equal(*apart) == (name == 'num_batches_tracked')
            for value in averaged:
                torch.testing.assert_close(value, sum(apart).div(2).to(value))


def test_broadcast_buffers_change_nothing_on_the_first_rank(ranks: list) -> None:
    torch.testing.assert_close(ranks[0]['broadcast'], ranks[0]['apart'], **EXACT)
    for norm in ('sn', 'bn'):
        states = [rank['broadcast']['state'][f'{norm}.running_mean'] for rank in ranks]
        apart = ranks[1]['apart']['state'][f'{norm}.running_mean']
        # It had the buffers of the first rank in its last step, and then updated them.
        assert not torch.equal(states[1], states[0])
        assert not torch.equal(states[1], apart)
