"""A spoiled backward pass costs its optimizer step, and that one alone."""

import pytest
import torch
from mmengine.optim import OptimWrapper
from torch import nn

from sn_openmmlab.hooks.non_finite.guarded_steps import GuardedSteps


@pytest.mark.parametrize('counts', [1, 2])
def test_step_of_a_spoiled_pass_is_left_out(counts: int) -> None:
    weight = nn.Parameter(torch.zeros(()))
    wrapper = OptimWrapper(torch.optim.SGD([weight], lr=1.0), accumulative_counts=counts)
    seen, answers = [], iter([True, False, True, True, True, True])

    def is_fine(of: OptimWrapper, loss: torch.Tensor) -> bool:
        assert of is wrapper
        seen.append(float(weight.grad))
        return next(answers)

    guard = GuardedSteps(wrapper, is_fine)
    values = []
    for _ in range(6):
        wrapper.update_params(weight * 1.0)
        values.append(weight.item())
    # Each pass adds the slope 1 / counts, and a step goes down by the sum.
    if counts == 1:
        assert values == [-1, -1, -2, -3, -4, -5]
    else:
        assert values == [0, 0, 0, -1, -1, -2]
        assert seen == [0.5, 1.0, 0.5, 1.0, 0.5, 1.0]
    guard.remove()
    assert not {'backward', 'step'} & set(vars(wrapper))
    wrapper.update_params(weight * 1.0)
