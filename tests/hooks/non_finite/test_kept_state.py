"""What a forward pass changes can be set back."""

import torch
from torch import nn

from sn_openmmlab.hooks.non_finite.kept_state import KeptState


def test_buffers_and_random_numbers_are_those_of_before() -> None:
    model = nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3))
    kept = KeptState(model)
    model(torch.randn(2, 3, 4, 4))
    kept.keep()
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    drawn = torch.rand(3)
    model(torch.full((2, 3, 4, 4), torch.nan))
    assert model[2].running_mean.isnan().any()
    kept.restore_buffers()
    for name, buffer in model.named_buffers():
        assert torch.equal(buffer, before[name])
    assert model[0].num_batches_tracked == 1
    kept.random.restore()
    assert torch.equal(torch.rand(3), drawn)
