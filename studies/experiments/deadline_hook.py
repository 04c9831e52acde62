"""The hook that ends a training after a time."""

import time

from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import Runner


@HOOKS.register_module()
class DeadlineHook(Hook):
    """End a training with the first epoch that ends after a time.

    That epoch is evaluated, and its checkpoint written, as every other.

    Args:
        seconds: from the first iteration on.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def before_train(self, runner: Runner) -> None:
        """Begin to count."""
        self._end = time.monotonic() + self._seconds

    def after_train_epoch(self, runner: Runner) -> None:
        """End the loop if the time is over."""
        if time.monotonic() >= self._end:
            runner.train_loop.stop_training = True
