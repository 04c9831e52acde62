"""Run tools/train.py with its arguments, on a model like that of `small_run`, and break it."""

import builtins
import os
import resource
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.config import Config
from mmengine.dist import get_rank
from mmengine.hooks import Hook
from mmengine.registry import HOOKS, MODELS
from mmengine.runner import Runner
from torch import nn

from sn_openmmlab.checkpoints.trial_loading import unwrapped
from tests import small_run
from tests.toolbox_caches import format_configs_once

TOOLS = str(Path(__file__).parents[1] / 'tools')


@MODELS.register_module()
class LargeModel(small_run.SmallModel):
    """The small model with SN alone, whose checkpoints take some time to write.

    Args:
        size: of a parameter that nothing uses, in floats.
    """

    def __init__(self, size: int = 0) -> None:
        super().__init__(drops=False)
        self.bn = nn.Identity()
        self.ballast = nn.Parameter(torch.zeros(size), requires_grad=False)


@HOOKS.register_module()
class SignalHook(Hook):
    """Send this process signals in an iteration.

    Args:
        signal: the name of it.
        iteration: its number, from 1.
        place: where in it: `'train'`, `'val'` in the middle of the validation after it, or a
            function of `os` at whose next call it comes, or `'record'` while mmengine writes
            ``last_checkpoint``.
        waits: seconds before each further one.
        ranks: that get it.
        group: whether the whole process group gets it, which then is the process's own.
    """

    def __init__(
        self,
        signal: str,
        iteration: int,
        place: str = 'train',
        waits: Sequence[float] = (),
        ranks: Sequence[int] = (0,),
        group: bool = False,
    ) -> None:
        self.signal, self.iteration, self.place = signal, iteration, place
        self.waits, self.ranks, self.group = waits, ranks, group
        if group:
            # Before there are data workers.
            os.setpgrp()

    def before_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        if runner.iter + 1 != self.iteration or get_rank() not in self.ranks:
            return
        if self.place == 'train':
            self._send()
        elif self.place == 'record':
            self._open, builtins.open = open, self._open_record
        elif self.place != 'val':
            setattr(os, self.place, self._send)

    def before_val_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None) -> None:
        here = runner.iter == self.iteration and self.place == 'val' and batch_idx == 1
        if here and get_rank() in self.ranks:
            self._send()

    def _open_record(self, file: Any, *args: Any, **kwargs: Any) -> Any:
        stream = self._open(file, *args, **kwargs)
        if str(file).endswith('last_checkpoint'):
            self._send()
        return stream

    def _send(self, *args: Any, **kwargs: Any) -> None:
        number = getattr(signal, self.signal)
        for wait in (0, *self.waits):
            time.sleep(wait)
            if self.group:
                # From elsewhere: what their parent sends means something else to data workers.
                command = ['kill', f'-{int(number)}', '--', f'-{os.getpgrp()}']
                subprocess.run(command, check=True, start_new_session=True)
            else:
                os.kill(os.getpid(), number)


@HOOKS.register_module()
class FullDiskHook(Hook):
    """Let no file become larger than a limit from an iteration on, which acts like a full disk."""

    def __init__(self, iteration: int, size: int) -> None:
        self.iteration, self.size = iteration, size

    def before_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        if runner.iter + 1 == self.iteration:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, -1))


@HOOKS.register_module()
class RecordHook(Hook):
    """Write down the loss of each iteration, and at the end the weights of each rank."""

    def after_train_iter(self, runner: Runner, *args: Any, outputs: Any, **kwargs: Any) -> None:
        with open(Path(runner.work_dir) / f'losses{get_rank()}.txt', 'a') as stream:
            print(runner.iter + 1, float(outputs['loss']).hex(), file=stream)

    def after_train(self, runner: Runner) -> None:
        state = unwrapped(runner.model).state_dict()
        torch.save(state, f'{runner.work_dir}/rank{get_rank()}.pt')


def losses(work_dir: Path, rank: int = 0) -> list[tuple[int, str]]:
    """Return the number and the loss of each iteration, as `RecordHook` wrote them."""
    lines = (work_dir / f'losses{rank}.txt').read_text().splitlines()
    return [(int(number), loss) for number, loss in map(str.split, lines)]


def training_config(work_dir: Path, *hooks: dict, **changes: Any) -> Config:
    """Return a config of 12 iterations, with a checkpoint every 2, of which the last is kept."""
    return small_run.small_config(
        work_dir,
        # tools/train.py wants a toolbox.
        default_scope='mmdet',
        custom_hooks=[dict(type='RecordHook'), *hooks],
        **{
            'train_cfg': dict(by_epoch=False, max_iters=12, val_interval=4),
            'model.type': 'LargeModel',
            'train_dataloader.sampler.type': 'InfiniteSampler',
            'train_dataloader.dataset.augments': False,
            'default_hooks.checkpoint': dict(
                type='CheckpointHook', by_epoch=False, interval=2, max_keep_ckpts=1
            ),
            **changes,
        },
    )


def main() -> None:
    sys.path.insert(0, TOOLS)
    sys.argv = ['train.py', *sys.argv[1:]]
    format_configs_once()
    with pytest.MonkeyPatch.context() as patch:
        small_run.register(patch)
        runpy.run_path(f'{TOOLS}/train.py', run_name='__main__')


if __name__ == '__main__':
    main()
