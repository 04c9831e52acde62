"""The hook of our tools that ends a training whose loss or weights are no numbers any more."""

from collections.abc import Iterator
from typing import Any

import torch
from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch import Tensor

from sn_openmmlab.checkpoints.trial_loading import unwrapped
from sn_openmmlab.errors import UsageError
from sn_openmmlab.hooks.non_finite.checks import any_non_finite, is_scaled, tensors_in
from sn_openmmlab.hooks.non_finite_guard_hook import NonFiniteGuardHook


class FiniteWeightsHook(Hook):
    """Stop a training whose loss is infinite or NaN, and save no such weights.

    Our tools add it to every training. It looks at the loss, which mmengine waits for in each
    iteration anyway, and at the weights before a checkpoint is written. A step that a gradient
    scaler leaves out stops nothing as long as the weights are finite. `NonFiniteGuardHook` looks at
    every gradient, acts before the weights change, and says where the fault begins; beside it this
    hook looks at checkpoints only.

    Raises:
        UsageError: in a run, if the loss or the weights are not finite.
    """

    # After mmengine's hook that waits for the losses.
    priority = 'LOW'

    def after_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        """Stop if a loss is not finite, and with a gradient scaler only if weights are not."""
        if _is_finite(_losses(outputs)) or _is_guarded(runner):
            return
        if is_scaled(runner.optim_wrapper) and _is_finite(_weights(runner)):
            return
        raise UsageError(
            f'the training stops at iteration {runner.iter + 1}, since its loss is not finite: '
            f'{_REMEDY}.'
        )

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        """Look at the weights before they are written."""
        if not _is_finite(_weights(runner)):
            raise UsageError(
                f'the training stops after iteration {runner.iter}, since its weights are not '
                f'finite, and saves no checkpoint of them: {_REMEDY}.'
            )


_REMEDY = (
    'lower the learning rate or correct the data or the settings; '
    "custom_hooks=[dict(type='NonFiniteGuardHook')] in the config names the layer and the images"
)


def _is_guarded(runner: Runner) -> bool:
    return any(isinstance(hook, NonFiniteGuardHook) for hook in runner.hooks)


def _losses(outputs: Any) -> Iterator[Tensor]:
    """Yield the losses of a step; what else it logs, such as a PSNR, may be infinite."""
    outputs = outputs if isinstance(outputs, dict) else {}
    yield from tensors_in({name: x for name, x in outputs.items() if 'loss' in str(name)})


def _weights(runner: Runner) -> Iterator[Tensor]:
    # A frozen one can be a mask, which may hold infinities.
    yield from (p for p in unwrapped(runner.model).parameters() if p.requires_grad)


def _is_finite(tensors: Iterator[Tensor]) -> bool:
    groups: dict[torch.device, list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault(tensor.device, []).append(tensor)
    return not any(any_non_finite(group, device) for device, group in groups.items())
