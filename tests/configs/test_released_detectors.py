"""The configs of the released detectors have the authors' settings, or MMDetection's parts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from mmengine.config import Config

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / 'configs/detection/released'
# The AP of boxes and masks that the authors report for each file.
RELEASED = {
    'faster-rcnn_r50_fpn_sn_8xb2': ('39.10', None),
    'faster-rcnn_r50_fpn_sn_8xb1': ('38.99', None),
    'mask-rcnn_r50_fpn_sn_8xb1': ('41.01', '36.12'),
    'faster-rcnn_r50_c4_sn': ('38.07', None),
}
SCRATCH = 'mask-rcnn_r50_fpn_sn_scratch'
# What a cell holds that has nothing to hold.
EMPTY = '\N{EN DASH}'
EXACT = [*RELEASED, SCRATCH]


def load(name: str) -> Config:
    """Return a config of the folder."""
    return Config.fromfile(FOLDER / f'{name}.py')


def types(value: object) -> Iterator[str]:
    """Return all types in a config."""
    if isinstance(value, dict):
        yield str(value.get('type', ''))
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from types(part)


def test_each_release_has_two_configs() -> None:
    names = {file.stem for file in FOLDER.glob('*.py')}
    assert names == {*EXACT, *(f'{name}_finetune' for name in RELEASED)}


@pytest.mark.parametrize('name', RELEASED)
def test_reported_numbers_are_the_authors(name: str) -> None:
    models = yaml.safe_load((FOLDER / 'metafile.yml').read_text())['Models']
    page = (FOLDER / 'README.md').read_text()
    box, mask = RELEASED[name]
    (model,) = [model for model in models if model['Name'] == name]
    assert model['Metadata']['Box AP of the Authors'] == box
    assert model['Metadata'].get('Mask AP of the Authors') == mask
    assert f'[{name}]({name}.py) | none | {box} | {mask or EMPTY} | {EMPTY} |' in page


@pytest.mark.parametrize('name', RELEASED)
def test_second_config_has_the_same_network_of_stock_parts(name: str) -> None:
    exact, stock = load(name), load(f'{name}_finetune')
    assert not [kind for kind in types(stock._cfg_dict.to_dict()) if 'Detectron' in kind]
    assert stock.load_from == exact.load_from == f'checkpoints/{name}.pth'
    for config in (exact, stock):
        assert config.model.backbone.init_cfg is None
        assert "Pretrained'" not in str(config.model)
    for part in ('backbone', 'neck', 'data_preprocessor', 'train_cfg'):
        if part != 'data_preprocessor' or 'c4' not in name:
            assert exact.model.get(part) == stock.model.get(part), part
    assert exact.train_dataloader == stock.train_dataloader
    assert exact.train_cfg.max_epochs == stock.train_cfg.max_epochs == 24


@pytest.mark.parametrize('name', EXACT)
def test_settings_of_inference_are_the_authors(name: str) -> None:
    model, c4 = load(name).model, 'c4' in name
    rpn, boxes = model.test_cfg.rpn, model.test_cfg.rcnn
    assert (rpn.nms_pre, rpn.max_per_img, rpn.min_bbox_size) == (6000 if c4 else 1000, 1000, -1)
    assert rpn.nms == dict(type='nms', iou_threshold=0.7, offset=1)
    assert (boxes.score_thr, boxes.max_per_img) == (0.05, 100)
    assert boxes.nms == dict(type='nms', iou_threshold=0.5, offset=1)
    head = model.roi_head.bbox_head
    # The inverse of their weights, 10, 10, 5, 5.
    assert head.bbox_coder.target_stds == [0.1, 0.1, 0.2, 0.2]
    assert (head.num_classes, head.reg_class_agnostic) == (80, False)
    layers = [model.roi_head.bbox_roi_extractor.roi_layer]
    size = 14 if c4 else 7
    if 'mask' in name:
        layers.append(model.roi_head.mask_roi_extractor.roi_layer)
    for layer, output in zip(layers, (size, 14), strict=False):
        assert (layer.output_size, layer.aligned) == (output, False)
        assert layer.sampling_ratio == (0 if c4 else 2)


@pytest.mark.parametrize('name', EXACT)
def test_images_are_the_authors(name: str) -> None:
    config = load(name)
    images = config.model.data_preprocessor
    steps = {step.type: step for step in config.test_dataloader.dataset.pipeline}
    rgb = ([123.675, 116.28, 103.53], [58.395, 57.12, 57.375], True)
    bgr = ([102.9801, 115.9465, 122.7717], [1.0, 1.0, 1.0], False)
    expected = bgr if name == SCRATCH else rgb
    assert (images.mean, images.std, images.bgr_to_rgb) == expected
    assert steps['LoadImageFromFile'].to_float32
    assert steps['DetectronResize'].scale == (1333, 800)
    if 'c4' in name:
        assert 'Pad' not in steps
        assert images.pad_size_divisor == 1
    else:
        # Before normalization the padding has the mean, in the order of the file: BGR.
        mean = images.mean[::-1] if images.bgr_to_rgb else images.mean
        assert steps['Pad'].pad_val == dict(img=tuple(mean))
        assert steps['Pad'].size_divisor == images.pad_size_divisor == 32


@pytest.mark.parametrize('name', EXACT)
def test_pictures_show_both_ends(name: str) -> None:
    assert load(name).visualizer.type == 'DetectronVisualizer'


@pytest.mark.parametrize('name', EXACT)
def test_evaluation_counts_both_ends_on_val2017(name: str) -> None:
    config = load(name)
    for split in ('val', 'test'):
        evaluator = config[f'{split}_evaluator']
        assert evaluator.type == 'DetectronCocoMetric'
        assert evaluator.ann_file == 'data/coco/annotations/instances_val2017.json'
        assert evaluator.metric == (['bbox', 'segm'] if 'mask' in name else 'bbox')
        assert config[f'{split}_dataloader'].dataset.data_prefix == dict(img='val2017/')
        assert config[f'{split}_dataloader'].batch_size == 1
    assert config.custom_imports.imports == ['sn_openmmlab', 'sn_openmmlab.detectron']
