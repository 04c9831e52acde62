"""What each part that MMDetection lacks is worth: detections of the authors that are found again.

The detectors have drawn weights, and the record of what the authors' code finds with them is the
one of the tests.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from mmdet.registry import MODELS
from mmdet.structures.bbox import bbox_overlaps
from mmengine.config import Config
from mmengine.dataset import Compose
from mmengine.registry import DefaultScope
from mmengine.structures import InstanceData
from torch import Tensor, nn

from sn_openmmlab.checkpoints.plans.released_detector import plan_released_detector
from sn_openmmlab.detectron.both_ends import edges
from studies.presentation.markdown import table

CONFIGS = Path(__file__).parents[2] / 'configs/detection/released'
# The config of each recorded detector, and what the table calls it.
DETECTORS = {
    'faster_rcnn_r50_fpn_sn': ('faster-rcnn_r50_fpn_sn_8xb2', 'Faster R-CNN'),
    'mask_rcnn_r50_fpn_sn_8x1': ('mask-rcnn_r50_fpn_sn_8xb1', 'Mask R-CNN'),
}
PHOTOS = {'photo_1x': 'own size', 'photo': 'resized'}
_EXACT_TO = 0.01
_BOXES, _MASKS = 'model.roi_head.bbox', 'model.roi_head.mask'


@dataclass(frozen=True)
class Variant:
    """A detector in which MMDetection's parts take the place of exact ones.

    Attributes:
        name: What is MMDetection's.
        changes: Changes of the exact config, by dotted key. Those of masks are left out where there
            are none.
        steps: Step of the pipeline → what replaces it, or None to leave it out.
        stock: Whether to take the config with nothing but MMDetection's parts.
        fold: Whether `bn` of the first stage is folded into `in`; None does as the converter.
    """

    name: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    steps: Mapping[str, dict | None] = field(default_factory=dict)
    stock: bool = False
    fold: bool | None = None


VARIANTS = (
    Variant('nothing'),
    Variant('the anchors', {'model.rpn_head.anchor_generator.type': 'AnchorGenerator'}),
    Variant(
        'the box coder',
        dict.fromkeys(
            ('model.rpn_head.bbox_coder.type', f'{_BOXES}_head.bbox_coder.type'),
            'DeltaXYWHBBoxCoder',
        ),
    ),
    Variant(
        'the levels of the boxes',
        dict.fromkeys(
            (f'{_BOXES}_roi_extractor.type', f'{_MASKS}_roi_extractor.type'), 'SingleRoIExtractor'
        ),
    ),
    Variant(
        'RoIAlign, shifted by half a pixel',
        dict.fromkeys(
            (f'{part}_roi_extractor.roi_layer.aligned' for part in (_BOXES, _MASKS)), True
        ),
    ),
    Variant(
        'NMS',
        dict.fromkeys(('model.test_cfg.rpn.nms.offset', 'model.test_cfg.rcnn.nms.offset'), 0),
    ),
    Variant('the frame of the deltas', {f'{_BOXES}_head.type': 'ConvFCBBoxHead'}),
    Variant(
        'resizing',
        steps={
            'LoadImageFromFile': dict(type='LoadImageFromFile'),
            'DetectronResize': dict(type='Resize', keep_ratio=True),
        },
    ),
    Variant('the image that proposals are clipped to', steps={'Pad': None}),
    Variant('the first stage (`--first-stage keep`)', fold=False),
    Variant('all of these but the last', stock=True),
)


@dataclass(frozen=True)
class Found:
    """How many of the 100 detections in a picture are found again.

    Attributes:
        variant: What is MMDetection's.
        detector: A key of `DETECTORS`.
        photo: A key of `PHOTOS`.
        found: Detections that one of the same class overlaps by more than a half.
        exact: Detections of which one of the same class has every corner within 0.01 pixel.
    """

    variant: str
    detector: str
    photo: str
    found: int
    exact: int


def build_detector(config: Config, weights: Mapping[str, Tensor], fold: bool | None) -> nn.Module:
    """Return the model of a config in evaluation mode, with weights as the authors release them."""
    with DefaultScope.overwrite_default_scope('mmdet'):
        model = MODELS.build(config.model).eval()
    model.load_state_dict(plan_released_detector(weights, fold).convert())
    return model


@torch.no_grad()
def detect(
    model: nn.Module, config: Config, record: Mapping[str, Any]
) -> tuple[dict, InstanceData]:
    """Return the batch that a model gets of a recorded picture, and what it finds.

    Args:
        model: The model.
        config: Its config, of which the pipeline counts.
        record: The picture, and the two sides to which it is resized.
    """
    image = record['image'].numpy()
    size = image.shape[:2]
    steps = [dict(step) for step in config.test_dataloader.dataset.pipeline]
    results = dict(img=image, img_shape=size, ori_shape=size, img_id=0, img_path='')
    if steps[0].get('to_float32'):
        results['img'] = image.astype('float32')
    kept = [step for step in steps if not step['type'].startswith('Load')]
    for step in kept:
        if 'Resize' in step['type']:
            step['scale'] = (record['max_size'], record['scale'])
    with DefaultScope.overwrite_default_scope('mmdet'):
        data = Compose(kept)(results)
        batch = dict(inputs=[data['inputs']], data_samples=[data['data_samples']])
        batch = model.data_preprocessor(batch)
        (sample,) = model(**batch, mode='predict')
    return batch, sample.pred_instances


def nearest(ours: InstanceData, detections: Tensor) -> tuple[Tensor, Tensor]:
    """Return for each recorded detection which of ours is nearest, and how far it is in pixels.

    Only detections of the same class count; without one, the distance is infinite.

    Args:
        ours: What the model finds.
        detections: x1, y1, x2, y2, score, class with 1 for the first: (N, 6).
    """
    distances = torch.cdist(detections[:, :4], ours.bboxes, p=float('inf'))
    least = distances.masked_fill(_other_class(ours, detections), float('inf')).min(1)
    return least.indices, least.values


def measure(
    record_of: Callable[[str], Mapping[str, Any]],
    weights_of: Callable[[str], Mapping[str, Tensor]],
    variants: Sequence[Variant] = VARIANTS,
) -> list[Found]:
    """Count the detections that are found again with each variant.

    Args:
        record_of: From a key of `DETECTORS` to its record.
        weights_of: From the same to its weights, as they are released.
        variants: What to measure.
    """
    made = []
    for case in DETECTORS:
        record, weights = record_of(case), weights_of(case)
        for variant in variants:
            config = _config(case, variant)
            model = build_detector(config, weights, variant.fold)
            for photo in PHOTOS:
                detections = record[photo]['detections']
                _, ours = detect(model, config, record[photo])
                made.append(Found(variant.name, case, photo, *_count(ours, detections)))
    return made


def worth_table(found: Sequence[Found]) -> str:
    """Return a row for each variant, with the detections found again, and those to 0.01 pixel."""
    columns = {
        f'{title}, {size}': _column(case, photo)
        for case, (_, title) in DETECTORS.items()
        for photo, size in PHOTOS.items()
    }
    return table(found, ["MMDetection's own"], lambda row: (row.variant,), columns)


def _column(case: str, photo: str) -> Callable[[list[Found]], str]:
    def cell(group: list[Found]) -> str:
        (row,) = [row for row in group if (row.detector, row.photo) == (case, photo)]
        return f'{row.found} ({row.exact})'

    return cell


def _config(case: str, variant: Variant) -> Config:
    name = DETECTORS[case][0] + ('_finetune' if variant.stock else '')
    config = Config.fromfile(CONFIGS / f'{name}.py')
    has_masks = 'mask_head' in config.model.roi_head
    config.merge_from_dict(
        {key: new for key, new in variant.changes.items() if has_masks or _MASKS not in key}
    )
    pipeline = config.test_dataloader.dataset.pipeline
    steps = [variant.steps.get(step.type, step) for step in pipeline]
    config.test_dataloader.dataset.pipeline = [step for step in steps if step is not None]
    return config


def _count(ours: InstanceData, detections: Tensor) -> tuple[int, int]:
    # Some boxes hold a single row of pixels.
    overlaps = bbox_overlaps(edges(detections[:, :4]), edges(ours.bboxes))
    overlaps = overlaps.masked_fill(_other_class(ours, detections), 0)
    _, distances = nearest(ours, detections)
    return int((overlaps.amax(1) > 0.5).sum()), int((distances < _EXACT_TO).sum())


def _other_class(ours: InstanceData, detections: Tensor) -> Tensor:
    return detections[:, 5:].long() != ours.labels + 1
