"""The hook that saves a checkpoint when the training is asked to end."""

import logging
import os
import signal
import time
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import torch
from mmengine.dist import all_reduce, barrier, is_main_process
from mmengine.hooks import CheckpointHook, EMAHook, Hook
from mmengine.logging import print_log
from mmengine.optim import OptimWrapperDict
from mmengine.runner import Runner

from sn_openmmlab.checkpoints.files.writing import write_file
from sn_openmmlab.hooks.interruption.child_processes import spare_children

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_FILE = 'preempted.pth'
# Of a terminal and of torchrun, the same signal can come twice.
_SECONDS_OF_ONE_REQUEST = 1


class PreemptionHook(Hook):
    """Save a checkpoint and end when SIGTERM or SIGINT comes, as before a preemption.

    The training finishes its iteration, with accumulated gradients the whole step, and writes
    ``preempted.pth`` beside its other checkpoints. It ends with exit code 128 plus the number of
    the signal: 143 after SIGTERM, 130 after SIGINT (Ctrl-C). A second signal, a second later or
    more, ends it at once. ``--resume`` goes on from there, with
    `ExactResumeHook` also in the middle of an epoch. In a config, or by ``--save-on-signal`` of our
    ``tools/train.py``:

        custom_hooks = [dict(type='PreemptionHook')]

    Of several processes one signalled is enough: all of them stop after the same iteration. A
    validation is not brought to its end, nor repeated after the resume.

    Data workers are moved out of the group of the process, so that a signal to the whole group, as
    by Ctrl-C or by Slurm, does not end them before the training.
    """

    # When an iteration is complete.
    priority = 'LOWEST'

    def __init__(self) -> None:
        self._received = 0
        self._received_at = 0.0
        # How many iterations of a validation all processes have.
        self._common = 0
        self._before: dict[signal.Signals, Any] = {}
        # Here, since data workers may be started before the training.
        spare_children(self)

    def before_train(self, runner: Runner) -> None:
        """Listen to the signals."""
        self._received = 0
        self._before = {number: signal.signal(number, self._receive) for number in _SIGNALS}

    def after_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        """Save and end, if any process was asked to and the step is complete."""
        number = self._agreed() if _step_is_complete(runner) else 0
        if number:
            self._end(runner, number, runner.iter + 1)

    def before_val_epoch(self, runner: Runner) -> None:
        """Find out how many iterations all processes have, since some may have fewer images."""
        common = torch.tensor(len(runner.val_dataloader))
        all_reduce(common, op='min')
        self._common = int(common)

    def after_val_iter(self, runner: Runner, batch_idx: int, *args: Any, **kwargs: Any) -> None:
        """Save and end, if any process was asked to."""
        number = self._agreed() if self._before and batch_idx < self._common else 0
        if number:
            for hook in runner.hooks:
                if isinstance(hook, EMAHook):
                    # It evaluates the averages in place of the weights.
                    hook.after_val_epoch(runner)
            self._end(runner, number, runner.iter)

    def after_train(self, runner: Runner) -> None:
        """Leave the signals to those who had them before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _agreed(self) -> int:
        """Return the signal that any process received, 0 for none."""
        number = torch.tensor(self._received)
        all_reduce(number, op='max')
        return int(number)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self._received:
            self._received, self._received_at = number, now
        elif now - self._received_at >= _SECONDS_OF_ONE_REQUEST:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def _end(self, runner: Runner, number: int, iteration: int) -> NoReturn:
        file = _save(runner, iteration)
        # The launcher ends the others with the first.
        barrier()
        print_log(
            f'{signal.Signals(number).name} came: the training ends after iteration {iteration}, '
            f'whose state is in {file}. Go on with --resume.',
            logger='current',
            level=logging.WARNING,
        )
        raise SystemExit(128 + number)


def _step_is_complete(runner: Runner) -> bool:
    wrapper = runner.optim_wrapper
    parts = wrapper.values() if isinstance(wrapper, OptimWrapperDict) else [wrapper]
    return all(part.should_update() for part in parts)


def _save(runner: Runner, iteration: int) -> str:
    """Save a checkpoint as `CheckpointHook` does; return its path."""
    hook = next((hook for hook in runner.hooks if isinstance(hook, CheckpointHook)), None)
    folder = runner.work_dir if hook is None else hook.out_dir
    runner.save_checkpoint(
        folder,
        _FILE,
        meta=dict(epoch=runner.epoch, iter=iteration),
        by_epoch=False,
        backend_args=None if hook is None else hook.backend_args,
    )
    file = os.path.join(folder, _FILE)
    if is_main_process():
        write_file(file.encode(), Path(runner.work_dir) / 'last_checkpoint')
    return file
