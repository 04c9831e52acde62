"""A backbone of a detector or a segmenter starts from a classifier that MMPretrain trained."""

from importlib import import_module
from pathlib import Path

import pytest
import torch
from mmengine.registry import DefaultScope
from torch import nn

from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.switch_norm import SwitchNorm

pytest.importorskip('mmpretrain')

# As MMPretrain and the others spell the same narrow ResNet-18.
WIDTHS = dict(depth=18, base_channels=8, stem_channels=8)
SN = dict(type='SN')


def build(toolbox: str, settings: dict) -> nn.Module:
    with DefaultScope.overwrite_default_scope(toolbox):
        return import_module(f'{toolbox}.registry').MODELS.build(settings)


def classifier(norm_cfg: dict) -> nn.Module:
    """Return a classifier of MMPretrain, each weight of which is random."""
    head = dict(type='LinearClsHead', num_classes=5, in_channels=64)
    backbone = dict(type='ResNet', norm_cfg=norm_cfg, **WIDTHS)
    neck = dict(type='GlobalAveragePooling')
    model = build(
        'mmpretrain', dict(type='ImageClassifier', backbone=backbone, neck=neck, head=head)
    )
    torch.manual_seed(0)
    for weight in model.state_dict().values():
        if weight.is_floating_point():
            weight.copy_(torch.rand_like(weight) + 0.5)
    return model.eval()


def write(model: nn.Module, file: Path) -> Path:
    # As mmengine does.
    torch.save({'meta': {}, 'state_dict': model.state_dict()}, file)
    return file


def started(toolbox: str, checkpoint: Path, **norm: object) -> nn.Module:
    init = dict(type='SNPretrained', checkpoint=str(checkpoint))
    norm_cfg = {**SN, **norm}
    backbone = build(toolbox, dict(type='ResNet', norm_cfg=norm_cfg, init_cfg=init, **WIDTHS))
    backbone.init_weights()
    # The train() of MMDetection's ResNet returns nothing.
    backbone.eval()
    return backbone


@pytest.mark.parametrize('toolbox', ['mmdet', 'mmseg', 'mmpretrain'])
def test_backbone_gives_the_features_of_the_classifier(toolbox: str, tmp_path: Path) -> None:
    trained = classifier(SN)
    backbone = started(toolbox, write(trained, tmp_path / 'classifier.pth'))
    layers = [layer for layer in backbone.modules() if isinstance(layer, SwitchNorm)]
    # One after the stem, two in each of eight blocks, three in shortcuts.
    assert len(layers) == 1 + 2 * 8 + 3
    own = backbone.state_dict()
    for name, weight in trained.backbone.state_dict().items():
        assert torch.equal(own[name], weight), name
    images = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(backbone(images)[-1], trained.backbone(images)[-1])


def test_classifier_with_batch_norm_is_converted(tmp_path: Path) -> None:
    trained = classifier(dict(type='BN'))
    backbone = started('mmdet', write(trained, tmp_path / 'classifier.pth'))
    for name, layer in backbone.named_modules():
        if isinstance(layer, SwitchNorm):
            other = trained.backbone.get_submodule(name.replace('sn', 'bn'))
            assert torch.equal(layer.weight, other.weight)
            assert torch.equal(layer.running_mean.flatten(), other.running_mean)
            assert layer.importance_ratios()[0].tolist() == pytest.approx([0.05, 0.05, 0.9])


def test_other_scopes_are_refused(tmp_path: Path) -> None:
    file = write(classifier(SN), tmp_path / 'classifier.pth')
    with pytest.raises(UsageError, match='scopes'):
        started('mmdet', file, scopes=('in', 'ln'))
