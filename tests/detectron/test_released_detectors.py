"""The configs of the released detectors compute what the authors' code computed, stage by stage.

The weights are drawn. A part of the record is in the repository; tests/recorded_detectors.py says
how to compare all of it.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from mmengine.config import Config
from torch import Tensor, nn

from sn_openmmlab.checkpoints.plans.released_detector import plan_released_detector
from tests import recorded_detectors

pytest.importorskip('mmdet')
from studies.experiments.released_detectors import (
    CONFIGS,
    DETECTORS,
    build_detector,
    detect,
    nearest,
)

RECORDS = ['part'] + (['whole'] if recorded_detectors.whole_record() else [])
needs_whole = pytest.mark.skipif(
    'whole' not in RECORDS, reason='needs the whole record: name its folder in SN_DETECTORS'
)


class Detector:
    """A released detector with drawn weights.

    Attributes:
        case: The name of its record.
        config: Its config.
        model: The model in evaluation mode.
    """

    def __init__(self, case: str, weights: dict[str, Tensor]) -> None:
        self.case, self._weights = case, weights
        self.config = Config.fromfile(CONFIGS / f'{DETECTORS[case][0]}.py')
        self.model = build_detector(self.config, weights, fold=None)

    def load(self, fold: bool | None) -> None:
        """Load the weights again."""
        self.model.load_state_dict(plan_released_detector(self._weights, fold).convert())

    @torch.no_grad()
    def stages(self, x: Tensor, rois: Tensor) -> dict[str, Tensor]:
        """Return the tensors of each stage by the names of the record, in our order of classes."""
        stages = self.model.backbone(x)
        pyramid = self.model.neck(stages)
        scores, boxes = self.model.rpn_head(pyramid)
        found = {f'C{level}': stage for level, stage in enumerate(stages, 2)}
        for level, *maps in zip(range(2, 7), pyramid, scores, boxes, strict=True):
            names = (f'P{level}', f'rpn_cls{level}', f'rpn_box{level}')
            found |= dict(zip(names, maps, strict=True))
        metas = [dict(img_shape=x.shape[-2:])] * len(x)
        proposals = self.model.rpn_head.predict_by_feat(scores, boxes, batch_img_metas=metas)
        return {**found, **self._head_stages(pyramid, rois), 'proposals': proposals}

    def _head_stages(self, pyramid: tuple[Tensor, ...], rois: Tensor) -> dict[str, Tensor]:
        heads = self.model.roi_head
        features = heads.bbox_roi_extractor(pyramid[:4], rois)
        scores, deltas = heads.bbox_head(features)
        found = dict(
            roi_features=features,
            box_head=last_hidden(heads.bbox_head, features),
            cls_logits=scores,
            box_deltas=deltas,
        )
        if heads.with_mask:
            features = heads.mask_roi_extractor(pyramid[:4], rois)
            inner = nn.Sequential(*heads.mask_head.convs, heads.mask_head.upsample, nn.ReLU())
            found['mask_head'] = inner(features[:2])
            # Rows 32 and 64 of theirs, which have the background first.
            found['mask_logits'] = heads.mask_head(features)[:, [31, 63]]
        return found


def last_hidden(head: nn.Module, features: Tensor) -> Tensor:
    """Return what the box head has after its last shared layer."""
    hidden = nn.Sequential(*head.shared_convs)(features).flatten(1)
    for layer in head.shared_fcs:
        hidden = layer(hidden).relu()
    return hidden


@pytest.fixture(scope='module', params=recorded_detectors.CASES)
def detector(request: pytest.FixtureRequest, released: Callable) -> Detector:
    """Return each recorded detector in turn."""
    return Detector(request.param, released(request.param)['model'])


@pytest.fixture(params=RECORDS)
def record(request: pytest.FixtureRequest, detector: Detector) -> tuple[dict, bool]:
    """Return what was recorded of the detector, and whether it is only a part."""
    part = request.param == 'part'
    return recorded_detectors.read(detector.case, part), part


@pytest.fixture
def unfolded(detector: Detector) -> Iterator[Detector]:
    """Yield the detector with the first stage as it was released."""
    detector.load(fold=False)
    yield detector
    detector.model.eval()
    detector.load(fold=None)


def relative_error(found: Tensor, expected: Tensor) -> float:
    """Return the norm of the difference over the norm."""
    assert found.shape == expected.shape
    return float((found - expected).norm() / expected.norm())


def check_stages(detector: Detector, theirs: dict[str, Any], part: bool) -> None:
    """Check each recorded tensor, the levels of the boxes, and the proposals."""
    ours = detector.stages(theirs['input_times_32'].float() / 32, theirs['rois'])
    for name in recorded_detectors.stage_names(theirs):
        expected, found = theirs[name], ours[name]
        if not part:
            expected = recorded_detectors.our_part(name, expected).flatten()
        # The channels of the masks are chosen already.
        stride = 1 if name == 'mask_logits' else theirs['channel_stride'][name]
        found = recorded_detectors.values(name, found[:, ::stride], part)
        assert relative_error(found, expected) < 1e-4, name
    extractor = detector.model.roi_head.bbox_roi_extractor
    assert torch.equal(extractor.map_roi_levels(theirs['rois'], 4) + 2, theirs['roi_levels'])
    check_proposals(ours['proposals'], theirs)


def check_proposals(results: list, theirs: dict[str, Any]) -> None:
    """Check the number of proposals, and where the first ones are."""
    images = torch.cat([torch.full((len(x), 1), float(i)) for i, x in enumerate(results)])
    boxes = torch.cat([x.bboxes for x in results])
    # They keep the best 1000 of all images.
    order = torch.cat([x.scores for x in results]).argsort(descending=True)[:1000]
    assert len(order) == theirs['num_proposals']
    found = torch.cat([images, boxes], 1)[order]
    # Nearly equal scores may be in another order.
    assert torch.cdist(theirs['proposals'], found, p=float('inf')).amin(1).max() < 0.01


def test_every_stage_of_a_picture(detector: Detector, record: tuple) -> None:
    theirs, part = record
    anchors = detector.model.rpn_head.prior_generator.base_anchors
    assert all(map(torch.equal, anchors, theirs['base_anchors']))
    check_stages(detector, theirs['A'], part)


@pytest.mark.parametrize('photo', ['photo_1x', 'photo'])
def test_whole_inference(detector: Detector, record: tuple, photo: str) -> None:
    theirs, part = record[0][photo], record[1]
    batch, ours = detect(detector.model, detector.config, theirs)
    blob = batch['inputs']
    assert float(blob.norm()) == pytest.approx(theirs['blob_norm'], rel=1e-5)
    found = recorded_detectors.values('blob', blob[:, :, ::4, ::4], part)
    assert relative_error(found, theirs['blob_every_4th_pixel'].flatten()) < 1e-5
    detections = theirs['detections']
    assert len(ours) == len(detections) == 100
    which, distances = nearest(ours, detections)
    assert len(set(which.tolist())) == 100
    assert distances.max() < 0.01
    assert torch.allclose(ours.scores[which], detections[:, 4], atol=2e-4, rtol=0)
    masks = theirs.get('pasted_masks_first', torch.zeros(0))
    if len(masks):
        assert torch.equal(ours.masks[which[: len(masks)]], masks.bool())


@needs_whole
def test_boxes_and_masks_before_the_choice(detector: Detector) -> None:
    """Of the first eight proposals, boxes and scores of all classes; 28 × 28 masks."""
    theirs = recorded_detectors.read(detector.case, part=False)['photo']
    batch, _ = detect(detector.model, detector.config, theirs)
    samples, heads = batch['data_samples'], detector.model.roi_head
    metas = [sample.metainfo for sample in samples]
    detections = theirs['detections']
    with torch.no_grad():
        pyramid = detector.model.extract_feat(batch['inputs'])
        (proposals,) = detector.model.rpn_head.predict(pyramid, samples)
        assert len(proposals) == theirs['num_rois']
        (found,) = heads.predict_bbox(pyramid, metas, [proposals[:8]], None, rescale=True)
        assert torch.allclose(found.bboxes, theirs['boxes_first'][:, 4:], atol=0.01, rtol=0)
        scores = theirs['scores_first'].roll(-1, 1)
        assert torch.allclose(found.scores, scores, atol=2e-4, rtol=0)
        if heads.with_mask:
            rows = detections[: len(theirs['detection_masks_first'])]
            rois = torch.cat([torch.zeros(len(rows), 1), rows[:, :4] * theirs['im_scale']], 1)
            masks = heads._mask_forward(pyramid, rois)['mask_preds'].sigmoid()
            masks = masks[torch.arange(len(rows)), rows[:, 5].long() - 1]
            assert relative_error(masks, theirs['detection_masks_first']) < 1e-4


@needs_whole
def test_every_stage_of_two_pictures(unfolded: Detector) -> None:
    """Here BN pools over both, so that the first stage has to be in training mode, as theirs."""
    unfolded.model.backbone.layer1.train()
    theirs = recorded_detectors.read(unfolded.case, part=False)['B']
    check_stages(unfolded, theirs, part=False)


# The other one has no bn.
@needs_whole
@pytest.mark.parametrize('detector', ['faster_rcnn_r50_fpn_sn'], indirect=True)
def test_first_stage_that_is_kept_is_theirs_in_evaluation_mode(unfolded: Detector) -> None:
    theirs = recorded_detectors.read(f'{unfolded.case}_all_eval', part=False)
    check_stages(unfolded, theirs['A'], part=False)
    for photo in ('photo_1x', 'photo'):
        _, ours = detect(unfolded.model, unfolded.config, theirs[photo])
        assert nearest(ours, theirs[photo]['detections'])[1].max() < 0.01
