"""The look into an exported graph sees what depends on the batch."""

import pytest
import torch
from torch import Tensor, nn

from sn_openmmlab.layers.switch_norm import SwitchNorm
from tests.exporters import export_program, export_traced_onnx

EXPORTERS = [export_program, export_traced_onnx]


@pytest.mark.parametrize('export', EXPORTERS, ids=lambda export: export.__name__)
@pytest.mark.parametrize('running', [True, False])
def test_sums_over_the_images_are_seen(running, export):
    layer = SwitchNorm(8, track_running_stats=running).eval()

    assert (0 in export(layer, torch.randn(2, 8, 5, 7)).reduced) is not running


def test_a_constant_size_of_the_batch_is_seen():
    class Rows(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return images.reshape(len(images), -1).relu()

    images = torch.randn(13, 3, 8, 9)

    assert 13 in export_traced_onnx(Rows(), images).integers
