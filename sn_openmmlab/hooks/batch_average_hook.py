"""The hook that evaluates and saves a model with the paper's batch average."""

from typing import Any

from mmengine.hooks import CheckpointHook, EMAHook, Hook
from mmengine.logging import print_log
from mmengine.model import BaseAveragedModel
from mmengine.runner import Runner
from torch import nn

from sn_openmmlab.inference.averaging import NUM_BATCHES, average_over_training
from sn_openmmlab.inference.training_batches import running_loop
from sn_openmmlab.layers.arguments import check_choice, check_flag
from sn_openmmlab.layers.batch_average import VARIANCES
from sn_openmmlab.ops.arguments import check_count


class BatchAverageHook(Hook):
    """Set the running statistics of SN by batch average before they are used or saved.

    The paper evaluates its networks in this way (Sec. 2 "Inference", App. A), instead of with the
    moving averages of training. Before each validation and test, and before each checkpoint of
    `CheckpointHook`, the network is frozen, a number of training batches pass through a copy of it
    in training mode, and the layers get the averages of the batches' statistics: see
    `sn_openmmlab.batch_average` for the estimator and its limits. In a config:

        custom_hooks = [dict(type='BatchAverageHook', num_batches=200)]

    Nothing else changes. The batches come from a data set and a sampler of their own and are the
    same in each pass, and all random state is restored. So the trained weights are bit for bit
    those of a training without the hook. Between the passes the layers go on with their moving
    averages.

    With `EMAHook`, the averaged weights and the trained ones each get the statistics of their own,
    in two passes. The first are those that are evaluated.

    In a distributed training each rank takes `num_batches` batches, and all ranks get the same
    statistics. A test of a checkpoint with this hook also makes a pass, and needs the training
    data: `--cfg-options custom_hooks=[]` leaves the hooks out.

    Args:
        num_batches: how many batches each rank takes in a pass; fewer if an epoch has fewer.
        variance: `'mean'`, the paper's average of the batches' variances, or `'pooled'`, which adds
            the variance of the batches' means.
        batch_norm: whether to set BatchNorm layers, too, which is known as precise BN, and
            BatchRenorm.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if an argument is out of its range.
        UsageError: in a run, if the model cannot be copied or there is no training data.
    """

    # After EMAHook, which changes weights and buffers after each iteration, before CheckpointHook.
    priority = 'LOW'

    def __init__(
        self, num_batches: int = NUM_BATCHES, variance: str = 'mean', batch_norm: bool = False
    ) -> None:
        check_count('num_batches', num_batches)
        check_choice('variance', variance, VARIANCES)
        check_flag('batch_norm', batch_norm)
        self.num_batches = num_batches
        self.variance = variance
        self.batch_norm = batch_norm
        # The iteration after which the statistics were set.
        self._set_at: int | None = None
        # What each averaged model does with its buffers while nothing is evaluated.
        self._updates_buffers: dict[BaseAveragedModel, bool] = {}

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        """Forget the statistics of the weights before."""
        self._set_at = None

    def before_val(self, runner: Runner) -> None:
        """Set the statistics before a validation."""
        self._prepare_evaluation(runner)

    def after_val(self, runner: Runner) -> None:
        """Let EMAHook go on."""
        self._end_evaluation()

    def before_test(self, runner: Runner) -> None:
        """Set the statistics before a test."""
        self._prepare_evaluation(runner)

    def after_test(self, runner: Runner) -> None:
        """Let EMAHook go on."""
        self._end_evaluation()

    def after_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        """Set the statistics before a checkpoint that is saved by iterations."""
        if any(_saves_after_iter(hook, runner) for hook in _hooks(runner, CheckpointHook)):
            self._average(runner, runner.iter + 1)

    def after_train_epoch(self, runner: Runner) -> None:
        """Set the statistics before a checkpoint that is saved by epochs."""
        if any(_saves_after_epoch(hook, runner) for hook in _hooks(runner, CheckpointHook)):
            self._average(runner, runner.iter)

    def _prepare_evaluation(self, runner: Runner) -> None:
        loop = running_loop(runner)
        self._average(runner, 0 if loop is None else loop.iter)
        # EMAHook evaluates the averaged weights by a swap, which otherwise leaves the buffers.
        for model in _averaged_models(runner):
            self._updates_buffers[model] = model.update_buffers
            model.update_buffers = True

    def _end_evaluation(self) -> None:
        for model, updates_buffers in self._updates_buffers.items():
            model.update_buffers = updates_buffers
        self._updates_buffers.clear()

    def _average(self, runner: Runner, iteration: int) -> None:
        """Set the statistics of the runner's models, unless they are those of this iteration."""
        if self._set_at == iteration:
            return
        self._average_model(runner.model, runner, 'the model')
        for model in _averaged_models(runner):
            self._average_model(model.module, runner, 'the averaged weights of EMAHook')
        self._set_at = iteration

    def _average_model(self, model: nn.Module, runner: Runner, name: str) -> None:
        done = average_over_training(
            model, runner, self.num_batches, self.variance, self.batch_norm
        )
        if done.layers:
            found = f'{len(done.layers)} layers, {done.batches} batches, {done.images} images.'
        else:
            found = 'no layer trains with statistics of the batch, or no batch reached one.'
        print_log(f'Batch average of {name}: {found}', logger='current')


def _hooks(runner: Runner, kind: type[Hook]) -> list[Any]:
    return [hook for hook in runner.hooks if isinstance(hook, kind)]


def _averaged_models(runner: Runner) -> list[BaseAveragedModel]:
    return [hook.ema_model for hook in _hooks(runner, EMAHook)]


def _saves_after_iter(hook: CheckpointHook, runner: Runner) -> bool:
    due = hook.every_n_train_iters(runner, hook.interval, hook.save_begin)
    return not hook.by_epoch and (due or (hook.save_last and hook.is_last_train_iter(runner)))


def _saves_after_epoch(hook: CheckpointHook, runner: Runner) -> bool:
    due = hook.every_n_epochs(runner, hook.interval, hook.save_begin)
    return hook.by_epoch and (due or (hook.save_last and hook.is_last_train_epoch(runner)))
