"""Optimizer steps that are left out after a spoiled backward pass."""

from collections.abc import Callable
from typing import Any

from mmengine.optim import OptimWrapper
from torch import Tensor


class GuardedSteps:
    """Watch the backward passes of an optimizer wrapper, and leave out the steps they spoil.

    It takes the place of ``backward`` and ``step`` of this wrapper, which every kind of wrapper
    and every model's own training step call. With accumulated gradients, one spoiled pass costs
    the whole step that it belongs to, since its gradients are already in the sum.

    Args:
        wrapper: of a training.
        is_fine: takes the wrapper and the loss after each backward pass, and returns whether the
            gradients may be used.
    """

    def __init__(
        self, wrapper: OptimWrapper, is_fine: Callable[[OptimWrapper, Tensor], bool]
    ) -> None:
        self._wrapper = wrapper
        self._is_fine = is_fine
        self._spoiled = False
        self._backward, self._step = wrapper.backward, wrapper.step
        wrapper.backward, wrapper.step = self.backward, self.step

    def backward(self, loss: Tensor, **kwargs: Any) -> None:
        """Run the backward pass, and drop its gradients if they may not be used."""
        self._backward(loss, **kwargs)
        if not self._is_fine(self._wrapper, loss):
            # What is accumulated next is then checked by itself.
            self._wrapper.zero_grad()
            self._spoiled = True

    def step(self, **kwargs: Any) -> None:
        """Take the step, unless a backward pass since the last one was spoiled."""
        if self._spoiled:
            self._spoiled = False
        else:
            self._step(**kwargs)

    def remove(self) -> None:
        """Give the wrapper its own methods back."""
        del self._wrapper.backward, self._wrapper.step
