"""The ratio of bn moves as the schedule says, whatever the others have learned."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from sn_openmmlab.experiments.ratio_schedule import RatioSchedule, set_batch_ratio
from sn_openmmlab.layers.switch_norm import SwitchNorm


@pytest.mark.parametrize('ratio', [0.99, 0.6, 0.1])
def test_bn_gets_the_ratio_and_the_others_keep_their_difference(ratio: float) -> None:
    control = nn.Parameter(torch.tensor([0.5, 2.0, -1.0]))
    set_batch_ratio(control, ('in', 'bn', 'ln'), ratio)
    found = torch.softmax(control.detach(), 0)
    assert found[1].item() == pytest.approx(ratio)
    assert (control[0] - control[2]).item() == pytest.approx(1.5)


def test_ratio_goes_in_a_line_and_then_learns_freely() -> None:
    layer, other = SwitchNorm(4), SwitchNorm(4)
    model = nn.ModuleDict({'backbone': nn.Sequential(layer), 'neck': other})
    hook = RatioSchedule(start=0.9, end=0.5, share=0.5)
    for step, ratio in ((0, 0.9), (5, 0.7), (9, 0.54)):
        runner = SimpleNamespace(model=model, iter=step, max_iters=20)
        hook.before_train_iter(runner, 0)
        for ratios in layer.importance_ratios():
            assert ratios[2].item() == pytest.approx(ratio)
    with torch.no_grad():
        layer.mean_weight.fill_(1)
    hook.before_train_iter(SimpleNamespace(model=model, iter=10, max_iters=20), 0)
    assert layer.mean_weight.tolist() == [1, 1, 1]
    assert other.mean_weight.tolist() == [1, 1, 1]
