"""Masks are pasted as the authors' code pasted them."""

import numpy as np
import pytest
import torch
from mmengine.config import ConfigDict

from tests import recorded_detectors

pytest.importorskip('mmdet')
from mmdet.models.roi_heads.mask_heads import FCNMaskHead

from sn_openmmlab.detectron.mask_head import DetectronMaskHead, paste_masks


@pytest.mark.parametrize('photo', ['photo', 'photo_1x'])
def test_recorded_masks_come_out_to_the_pixel(photo: str) -> None:
    record = recorded_detectors.read('mask_rcnn_r50_fpn_sn_8x1', part=True)[photo]
    expected = record['pasted_masks_first'].numpy()
    masks = record['detection_masks_first'].numpy()
    boxes = record['detections'][: len(masks), :4].numpy()
    assert len(masks) == len(expected)
    assert expected.any()
    assert np.array_equal(paste_masks(masks, boxes, record['image'].shape[:2]), expected)


def test_mmdetection_pastes_them_otherwise() -> None:
    """As docs/guides/released_detectors.md says."""
    head = FCNMaskHead(num_convs=1, in_channels=4, conv_out_channels=4, class_agnostic=True)
    overlaps = []
    for photo in ('photo', 'photo_1x'):
        record = recorded_detectors.read('mask_rcnn_r50_fpn_sn_8x1', part=True)[photo]
        masks, theirs = record['detection_masks_first'], record['pasted_masks_first']
        meta = dict(ori_shape=record['image'].shape[:2], scale_factor=(1.0, 1.0))
        cfg = ConfigDict(mask_thr_binary=0.5)
        boxes = record['detections'][: len(masks), :4].clone()
        ours = head._predict_by_feat_single(masks[:, None].logit(), boxes, None, meta, cfg, True)
        both, either = (ours & theirs).sum((1, 2)), (ours | theirs).sum((1, 2))
        overlaps += (both / either).tolist()
    assert (min(overlaps), max(overlaps)) == pytest.approx((0.30, 0.48), abs=0.005)


def test_mask_fills_its_box_and_is_cut_at_the_border() -> None:
    masks = np.ones((4, 28, 28), np.float32)
    boxes = np.array(
        [[10, 5, 37, 32], [0, 0, 27, 27], [30, 20, 59, 39], [20, 20, 20, 20]], np.float32
    )
    pasted = paste_masks(masks, boxes, (40, 60))
    assert pasted.shape == (4, 40, 60)
    # Half of the border of zeros on each side, and one pixel in and out.
    for mask, (x1, y1, x2, y2) in zip(pasted, boxes.astype(int), strict=True):
        inner = mask[y1 + 1 : y2, x1 + 1 : x2]
        assert inner.all()
        assert not mask[: max(y1 - 2, 0)].any()
        assert not mask[:, x2 + 3 :].any()
    assert paste_masks(masks[:0], boxes[:0], (40, 60)).shape == (0, 40, 60)


def test_head_pastes_the_mask_of_the_class_in_the_image() -> None:
    head = DetectronMaskHead(num_convs=1, num_classes=2, in_channels=4, conv_out_channels=4)
    masks = torch.full((1, 2, 28, 28), -9.0)
    masks[:, 1] = 9.0
    meta = dict(ori_shape=(40, 60), scale_factor=(2.0, 2.0))
    cfg = ConfigDict(mask_thr_binary=0.5)

    def paste(rescale: bool) -> tuple[torch.Tensor, torch.Tensor]:
        boxes, labels = torch.tensor([[20.0, 10, 74, 64]]), torch.tensor([1])
        made = head._predict_by_feat_single(masks, boxes, labels, meta, cfg, rescale)
        return made, boxes

    whole, boxes = paste(rescale=True)
    assert boxes.tolist() == [[10, 5, 37, 32]]
    expected = paste_masks(np.ones((1, 28, 28), np.float32), boxes.numpy(), (40, 60))
    assert torch.equal(whole, torch.from_numpy(expected))
    resized, boxes = paste(rescale=False)
    assert boxes.tolist() == [[20, 10, 74, 64]]
    assert resized.shape == (1, 80, 120)
    assert resized.sum() == pytest.approx(4 * float(whole.sum()), rel=0.1)


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16, torch.float64])
def test_head_takes_every_precision(dtype: torch.dtype) -> None:
    """Automatic mixed precision makes the masks half precision."""
    head = DetectronMaskHead(num_convs=1, class_agnostic=True, in_channels=4, conv_out_channels=4)
    meta = dict(ori_shape=(40, 60), scale_factor=(1.0, 1.0))
    cfg = ConfigDict(mask_thr_binary=0.5)

    def paste(dtype: torch.dtype) -> torch.Tensor:
        masks, boxes = torch.full((1, 1, 28, 28), 2.0), torch.tensor([[10.0, 5, 37, 32]])
        return head._predict_by_feat_single(
            masks.to(dtype), boxes.to(dtype), torch.tensor([0]), meta, cfg, rescale=True
        )

    assert paste(dtype).any()
    assert torch.equal(paste(dtype), paste(torch.float32))
