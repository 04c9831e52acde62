"""A whole detector starts from one with BatchNorm by one line of its config."""

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope
from torch import Tensor, nn

from sn_openmmlab.checkpoints.plans.layouts import to_toolbox
from sn_openmmlab.layers.convert.from_batch_norm import convert_batch_norm
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.runs.weights.check import check_start

models = pytest.importorskip('mmdet.registry').MODELS
NARROW = {
    'backbone.base_channels': 8,
    'neck.in_channels': [8, 16, 32, 64],
    'neck.out_channels': 8,
    'rpn_head.in_channels': 8,
    'rpn_head.feat_channels': 8,
    'roi_head.bbox_roi_extractor.out_channels': 8,
    'roi_head.bbox_head.in_channels': 8,
    'roi_head.bbox_head.conv_out_channels': 8,
    'roi_head.bbox_head.fc_out_channels': 8,
    'roi_head.bbox_head.num_classes': 3,
}


@pytest.fixture(scope='module')
def config(repo: Path) -> Callable[..., Config]:
    """A function (norm type, **changes) -> the config of the shipped detector, narrower."""
    base = Config.fromfile(repo / 'configs/_base_/faster-rcnn_r18_fpn_sn-all_scratch.py')

    def make(norm: str, **changes: object) -> Config:
        made = copy.deepcopy(base)
        made.merge_from_dict({f'model.{key}': value for key, value in NARROW.items()})
        for part in (made.model.backbone, made.model.neck, made.model.roi_head.bbox_head):
            part.norm_cfg = dict(type=norm)
        made.merge_from_dict(changes)
        return made

    return make


def build(made: Config) -> nn.Module:
    with DefaultScope.overwrite_default_scope('mmdet'):
        return models.build(copy.deepcopy(made.model))


@pytest.mark.parametrize('whole', [True, False], ids=['whole', 'backbone'])
def test_it_starts_from_a_detector_of_the_authors(
    whole: bool, outlined_file: Callable[[str], Path], repo: Path
) -> None:
    file = outlined_file('faster_rcnn_r50_fpn_sn_8x1')
    made = Config.fromfile(
        repo / 'configs/detection/released/faster-rcnn_r50_fpn_sn_8xb1_finetune.py'
    )
    start = dict(type='SNPretrained', checkpoint=str(file))
    made.load_from = None
    (made.model if whole else made.model.backbone).init_cfg = start
    model = build(made)
    check_start(model, made)
    model.init_weights()
    expected = to_toolbox(torch.load(file, weights_only=True)['model'])
    state = model.state_dict()
    equal = {name for name, weight in expected.items() if torch.equal(state[name], weight)}
    assert equal >= (set(expected) if whole else {n for n in expected if 'backbone.' in n})
    assert ('rpn_head.rpn_conv.weight' in equal) == whole


def outputs(model: nn.Module, image: Tensor, rois: Tensor) -> list[Tensor]:
    """Return the outputs of each part in evaluation."""
    model.eval()
    with torch.no_grad():
        features = model.extract_feat(image)
        return [*features, *model.rpn_head(features)[0], *model.roi_head.bbox_head(rois)]


@pytest.fixture(scope='module')
def batch_norm(
    config: Callable, trained: Callable, tmp_path_factory: pytest.TempPathFactory
) -> tuple[nn.Module, str]:
    """A detector with BatchNorm whose weights look trained, and its file."""
    model = trained(build(config('BN')))
    file = tmp_path_factory.mktemp('bn') / 'detector.pth'
    torch.save({'state_dict': model.state_dict(), 'meta': {}}, file)
    return model, str(file)


@pytest.mark.parametrize('ratio', [1.0, 0.9])
def test_it_computes_what_the_conversion_of_the_model_does(
    ratio: float, config: Callable, batch_norm: tuple
) -> None:
    source, file = batch_norm
    init_cfg = dict(type='SNPretrained', checkpoint=file, batch_ratio=ratio)
    made = config('SN', **{'model.init_cfg': init_cfg})
    model = build(made)
    check_start(model, made)
    model.init_weights()
    norms = [layer for layer in model.modules() if isinstance(layer, SwitchNorm)]
    # ResNet-18 has 20, the FPN 8, the head of the boxes 4.
    assert len(norms) == 32
    batch = torch.randn(1, 3, 64, 96), torch.randn(2, 8, 7, 7)
    expected = outputs(
        source if ratio == 1 else convert_batch_norm(copy.deepcopy(source), ratio), *batch
    )
    for ours, theirs in zip(outputs(model, *batch), expected, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_last_layers_of_other_classes_start_anew(
    config: Callable, batch_norm: tuple, log: pytest.LogCaptureFixture
) -> None:
    source, file = batch_norm
    made = config(
        'SN',
        **{
            'model.init_cfg': dict(type='SNPretrained', checkpoint=file),
            'model.roi_head.bbox_head.num_classes': 7,
        },
    )
    model = build(made)
    check_start(model, made)
    model.init_weights()
    assert (
        'it fills 32 of 32 SN layers and 36 of 38 convolutions and linear layers; not' in log.text
    )
    named = 'roi_head.bbox_head.fc_cls (another shape), roi_head.bbox_head.fc_reg (another shape)'
    assert named in log.text
    theirs = {name.replace('.bn', '.sn'): value for name, value in source.state_dict().items()}
    drawn = {
        name
        for name, value in model.state_dict().items()
        if name in theirs and not torch.equal(value, theirs[name])
    }
    last = ('fc_cls.weight', 'fc_cls.bias', 'fc_reg.weight', 'fc_reg.bias')
    assert drawn == {f'roi_head.bbox_head.{name}' for name in last}
