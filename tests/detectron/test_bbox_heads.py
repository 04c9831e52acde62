"""Deltas are applied in the frame of the image."""

from typing import Any

import pytest
import torch
from mmengine.config import ConfigDict

pytest.importorskip('mmdet')
from sn_openmmlab.detectron.bbox_heads import (
    DetectronBBoxHead,
    DetectronConvFCBBoxHead,
)

CODER = dict(
    type='mmdet.DetectronBBoxCoder',
    target_means=(0.0, 0.0, 0.0, 0.0),
    target_stds=(1.0, 1.0, 1.0, 1.0),
)
META = dict(img_shape=(96, 128), ori_shape=(40, 50), scale_factor=(2.0, 2.0))
HEADS = {
    'plain': lambda: DetectronBBoxHead(num_classes=1, in_channels=4, bbox_coder=CODER),
    'fc': lambda: DetectronConvFCBBoxHead(
        num_shared_fcs=1, num_classes=1, in_channels=4, fc_out_channels=4, bbox_coder=CODER
    ),
}


@pytest.fixture(params=HEADS)
def predict(request: pytest.FixtureRequest) -> Any:
    """Return a function that applies deltas to boxes in the resized image."""
    head = HEADS[request.param]()

    def predict_boxes(boxes: list, deltas: list, **options: Any) -> Any:
        rois = torch.tensor([[0.0, *box] for box in boxes]).reshape(-1, 5)
        scores = torch.tensor([[5.0, 0.0]] * len(boxes)).reshape(-1, 2)
        (found,) = head.predict_by_feat(
            (rois,), (scores,), (torch.tensor(deltas).reshape(-1, 4),), [META], **options
        )
        return found

    return predict_boxes


TEST = ConfigDict(score_thr=0.05, nms=dict(type='nms', iou_threshold=0.5), max_per_img=9)


def test_width_is_counted_in_the_image(predict: Any) -> None:
    # (20, 10, 38, 28) is (10, 5, 19, 14) in the image, ten pixels wide; half of it to the right.
    found = predict([(20, 10, 38, 28)], [(0.5, 0.0, 0.0, 0.0)], rescale=True, rcnn_test_cfg=TEST)
    assert found.bboxes.tolist() == [pytest.approx([15, 5, 24, 14])]
    # In the frame of the resized image it would have moved by 19 / 2 / 2.
    resized = predict([(20, 10, 38, 28)], [(0.5, 0.0, 0.0, 0.0)], rcnn_test_cfg=TEST)
    assert torch.allclose(resized.bboxes, found.bboxes * 2)


def test_box_is_clipped_to_the_image(predict: Any) -> None:
    found = predict([(60, 50, 120, 90)], [(0.0, 0.0, 0.7, 0.7)], rescale=True)
    assert found.bboxes[0, 2:4].tolist() == [49, 39]


def test_no_box_gives_none(predict: Any) -> None:
    for options in (dict(rescale=True), dict(rescale=False)):
        assert len(predict([], [], rcnn_test_cfg=TEST, **options)) == 0
        assert len(predict([], [], **options).bboxes) == 0
