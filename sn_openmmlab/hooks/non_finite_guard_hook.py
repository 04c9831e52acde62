"""The hook that stops a training as soon as something in it is no longer finite."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from shlex import quote
from typing import Any

import torch
from mmengine.dist import all_gather_object, all_reduce, is_main_process
from mmengine.hooks import Hook
from mmengine.logging import print_log
from mmengine.optim import OptimWrapper, OptimWrapperDict
from mmengine.runner import Runner
from torch import Tensor, nn

from sn_openmmlab.checkpoints.trial_loading import unwrapped
from sn_openmmlab.errors import UsageError
from sn_openmmlab.hooks.non_finite.checkpoints import checkpoint_folder, last_good_checkpoint
from sn_openmmlab.hooks.non_finite.checks import any_non_finite, gradients, running_statistics
from sn_openmmlab.hooks.non_finite.finding import Finding, describe, first_of
from sn_openmmlab.hooks.non_finite.guarded_steps import GuardedSteps
from sn_openmmlab.hooks.non_finite.images import image_paths
from sn_openmmlab.hooks.non_finite.kept_state import KeptState
from sn_openmmlab.hooks.non_finite.search import Call, search
from sn_openmmlab.inference.random_state import kept_random_state

_SIGNS = ('the loss', 'a gradient', 'a running statistic')
_SKIPPED = 'non_finite_skips'


class NonFiniteGuardHook(Hook):
    """Stop a training as soon as its loss, a gradient or a running statistic is not finite.

    After each backward pass, before the weights change, it looks for infinite and NaN numbers in
    the loss, in the gradients and in the running statistics of SN and of the other norms. If there
    are any, it repeats the forward pass without gradients to see in which layer they begin. The
    training stops with one sentence: the iteration, that layer, the paths of the images, and the
    newest checkpoint whose weights are finite. In a config:

        custom_hooks = [dict(type='NonFiniteGuardHook')]

    With ``max_skips`` it leaves out that many steps instead, each with a warning, before it stops.
    A step that is left out does not happen: weights, momentum and running statistics are those from
    before it, bit for bit. What it leaves behind: the iteration counts, in the schedules, too; its
    images have been used; the log shows its loss as it was; `EMAHook` averages the unchanged
    weights once more. With accumulated gradients the whole step is left out, and those of its
    batches that were fine leave their running statistics.

    With a loss scale, gradients may become infinite by design. `GradScaler` leaves such steps out
    by itself, so the gradients are looked at only once the scale is down to 1. In a training of
    several processes all of them stop, or leave out the step, together.

    Nothing else changes: a training with finite numbers is bit for bit the one without the hook.

    Args:
        max_skips: how many iterations of a training, those before a resume included, are left out;
            0 for none.

    Raises:
        TypeError: if ``max_skips`` is no whole number.
        ValueError: if it is negative.
        UsageError: in a run, at the first iteration that is not finite and not left out; or if the
            optimizer wrapper is none of mmengine's, or the model is divided by FSDP.
    """

    # After the hooks that change the model before an iteration.
    priority = 'VERY_LOW'

    def __init__(self, max_skips: int = 0) -> None:
        if isinstance(max_skips, bool) or not isinstance(max_skips, int):
            raise TypeError(f'max_skips must be a whole number, but is {max_skips!r}.')
        if max_skips < 0:
            raise ValueError(f'max_skips must be 0 or more, but is {max_skips}.')
        self.max_skips = max_skips
        self._runner: Runner
        self._model: nn.Module
        self._state: KeptState
        self._statistics: list[Tensor]
        self._batch: Any = None
        # The arguments of the forward pass of this iteration, if there was one.
        self._calls: list[Call] = []
        self._undo: list[Any] = []

    def before_train(self, runner: Runner) -> None:
        """Watch the optimizer wrapper and the model."""
        if _is_sharded(runner.model):
            raise UsageError(
                'NonFiniteGuardHook cannot look into a model that FSDP has divided: train with '
                'DistributedDataParallel, or remove the hook from custom_hooks.'
            )
        self._runner, self._model = runner, unwrapped(runner.model)
        for wrapper in _wrappers(runner.optim_wrapper):
            self._undo.append(GuardedSteps(wrapper, self._is_fine).remove)
        self._undo.append(_keep_calls(self._model, self._calls))

    def before_train_epoch(self, runner: Runner) -> None:
        """Look up the tensors that every iteration looks at."""
        self._statistics = list(running_statistics(self._model).values())
        self._state = KeptState(self._model)

    def before_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None) -> None:
        """Keep what the forward pass will change."""
        self._state.keep()
        self._batch = data_batch

    def after_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        """Let go of the images."""
        self._batch = None
        self._calls.clear()

    def after_train(self, runner: Runner) -> None:
        """Leave the optimizer wrapper and the model as they were."""
        for undo in self._undo:
            undo()
        self._undo.clear()

    def _is_fine(self, wrapper: OptimWrapper, loss: Tensor) -> bool:
        """Return whether a backward pass may be used; count it as skipped, or stop, if not."""
        signs = self._signs(wrapper, loss)
        if not signs:
            return True
        finding = first_of(all_gather_object(self._search(wrapper)))
        number = self._runner.iter + 1
        verb = 'is' if len(signs) == 1 else 'are'
        said = f'{" and ".join(signs)} {verb} not finite: {describe(finding)}'
        skipped = self._runner.message_hub.get_info(_SKIPPED, 0)
        if skipped >= self.max_skips:
            self._stop(number, said, skipped)
        self._runner.message_hub.update_info(_SKIPPED, skipped + 1)
        print_log(
            f'The step of iteration {number} is left out ({skipped + 1} of at most '
            f'{self.max_skips}): {said}.',
            logger='current',
            level=logging.WARNING,
        )
        return False

    def _signs(self, wrapper: OptimWrapper, loss: Tensor) -> list[str]:
        """Return what is not finite on any process."""
        parts = ([loss], list(gradients(wrapper)), self._statistics)
        for exact in (False, True):
            found = torch.stack([any_non_finite(part, loss.device, exact) for part in parts]).int()
            all_reduce(found, op='max')
            # The only place where the training waits for the device.
            signs = [sign for sign, bad in zip(_SIGNS, found.tolist(), strict=True) if bad]
            if not signs:
                break
        return signs

    def _search(self, wrapper: OptimWrapper) -> Finding:
        paths = image_paths(self._batch)
        call = self._calls[-1] if self._calls else None
        finding = search(self._model, call, paths, lambda: self._as_before(wrapper))
        self._state.restore_buffers()
        return finding

    @contextmanager
    def _as_before(self, wrapper: OptimWrapper) -> Iterator[None]:
        """Go back to before the forward pass, but for the random numbers that come after it."""
        with kept_random_state(), wrapper.optim_context(self._model):
            self._state.restore_buffers()
            self._state.random.restore()
            yield

    def _stop(self, number: int, said: str, skipped: int) -> None:
        folder = checkpoint_folder(self._runner)
        # All processes say the same, and reading a large file takes time.
        own = str(last_good_checkpoint(folder) or '') if is_main_process() else ''
        checkpoint = all_gather_object(own)[0]
        after = f' after {skipped} left out' if skipped else ''
        go_on = (
            f'the last good checkpoint is {checkpoint}: lower the learning rate, clip the '
            f'gradients or correct the data, and go on with --resume {quote(checkpoint)}'
            if checkpoint
            else f'{folder} has no good checkpoint: lower the learning rate, clip the gradients or '
            'correct the data, and start again'
        )
        message = f'the training stops at iteration {number}{after}, since {said}; {go_on}.'
        if is_main_process():
            print_log(message, logger='current', level=logging.ERROR)
        raise UsageError(message)


def _wrappers(wrapper: OptimWrapper | OptimWrapperDict) -> list[OptimWrapper]:
    wrappers = (
        list(wrapper.optim_wrappers.values())
        if isinstance(wrapper, OptimWrapperDict)
        else [wrapper]
    )
    for part in wrappers:
        if not isinstance(part, OptimWrapper):
            raise UsageError(
                f'NonFiniteGuardHook does not know the optimizer wrapper {type(part).__name__}: '
                'train with OptimWrapper or AmpOptimWrapper, or remove the hook from custom_hooks.'
            )
    return wrappers


def _is_sharded(model: nn.Module) -> bool:
    # By name: not every torch has both.
    names = {base.__name__ for module in model.modules() for base in type(module).__mro__}
    return bool(names & {'FullyShardedDataParallel', 'FSDPModule'})


def _keep_calls(model: nn.Module, calls: list[Call]) -> Any:
    """Keep the arguments of a model's last forward pass in training; return how to end that."""

    # A function, since copies of the model copy what a bound method belongs to.
    def keep(module: nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
        if module.training:
            calls[:] = [(args, kwargs)]

    return model.register_forward_pre_hook(keep, with_kwargs=True).remove
