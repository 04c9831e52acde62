"""A layer with folded λ computes in evaluation what the old one does in training on one image."""

import copy

import pytest
import torch

from sn_openmmlab.checkpoints.plans.frozen_stage import fold_batch_norm, is_folded
from sn_openmmlab.layers.switch_norm import SwitchNorm


def test_share_of_bn_goes_to_in() -> None:
    for control in (torch.tensor([0.3, -2.0, 1.5]), torch.tensor([-80.0, 0.0, 90.0])):
        old, new = control.softmax(0), fold_batch_norm(control).softmax(0)
        assert torch.allclose(new, torch.stack([old[0] + old[2], old[1], torch.zeros(())]))
        assert new[2] < 1e-40
        assert fold_batch_norm(control).isfinite().all()


def test_layer_computes_the_same_on_one_image() -> None:
    generator = torch.Generator().manual_seed(0)
    layer = SwitchNorm(6, correction=1)
    with torch.no_grad():
        for tensor in (*layer.parameters(), layer.running_mean):
            tensor.copy_(torch.randn(tensor.shape, generator=generator))
    x = torch.randn(1, 6, 9, 7, generator=generator)
    folded = copy.deepcopy(layer).eval()
    with torch.no_grad():
        for control in (folded.mean_weight, folded.var_weight):
            control.copy_(fold_batch_norm(control))
        expected = layer.train()(x)
        assert torch.allclose(folded(x), expected, atol=1e-5)
        # In evaluation mode the old layer computes something else.
        assert not torch.allclose(layer.eval()(x), expected, atol=0.1)


@pytest.mark.parametrize(
    ('name', 'folds'),
    [
        ('backbone.layer1.0.downsample.1.mean_weight', True),
        ('backbone.layer1.2.sn3.var_weight', True),
        ('backbone.layer1.2.sn3.weight', False),
        ('backbone.layer2.0.sn1.mean_weight', False),
        # Their stem is frozen as it should be.
        ('backbone.sn1.mean_weight', False),
    ],
)
def test_the_first_stage_is_folded(name: str, folds: bool) -> None:
    assert is_folded(name) == folds
