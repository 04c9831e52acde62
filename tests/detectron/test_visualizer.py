"""Predictions are drawn with both of their ends, however narrow they are."""

from typing import Any

import numpy as np
import pytest
import torch
from mmengine.structures import InstanceData

pytest.importorskip('mmdet')
from mmdet.structures import DetDataSample
from mmdet.visualization import DetLocalVisualizer

from sn_openmmlab.detectron.visualizer import DetectronVisualizer

IMAGE = np.zeros((30, 40, 3), np.uint8)


def sample(boxes: list, **more: Any) -> DetDataSample:
    """Return a sample in which boxes of one class were found."""
    size = len(boxes)
    found = dict(bboxes=torch.tensor(boxes).reshape(-1, 4), scores=torch.ones(size))
    found['labels'] = torch.zeros(size, dtype=torch.long)
    return DetDataSample(pred_instances=InstanceData(**found, **more))


def drawn(kind: type[DetLocalVisualizer], data_sample: DetDataSample | None) -> np.ndarray:
    """Return the picture of a sample."""
    visualizer = kind(bbox_color='white', line_width=1)
    visualizer.dataset_meta = dict(classes=('thing',), palette=[(255, 255, 255)])
    visualizer.add_datasample('picture', IMAGE, data_sample=data_sample, pred_score_thr=0.5)
    return visualizer.get_image()


def test_box_is_drawn_around_its_last_pixel() -> None:
    found = sample([[4.0, 6, 19, 13]])
    picture = drawn(DetectronVisualizer, found)
    assert np.array_equal(picture, drawn(DetLocalVisualizer, sample([[4.0, 6, 20, 14]])))
    assert picture.any()
    # The prediction itself stays as it is.
    assert found.pred_instances.bboxes.tolist() == [[4, 6, 19, 13]]


@pytest.mark.parametrize(
    'box', [[9.0, 9, 8.2, 9], [9.0, 9, 6.5, 8], [0.0, 0, 0, 0], [35.0, 9, 35, 8]]
)
def test_narrow_boxes_are_drawn(box: list[float]) -> None:
    masks = torch.zeros(1, 30, 40, dtype=torch.bool)
    masks[0, 0, 0] = True
    for more in ({}, dict(masks=masks)):
        assert drawn(DetectronVisualizer, sample([box], **more)).any()


def test_nothing_found_draws_the_image() -> None:
    for data_sample in (sample([]), DetDataSample(), None):
        assert not drawn(DetectronVisualizer, data_sample).any()


def test_ground_truth_is_drawn_as_it_is() -> None:
    truth = InstanceData(bboxes=torch.tensor([[4.0, 6, 20, 14]]), labels=torch.tensor([0]))
    data_sample = DetDataSample(gt_instances=truth)
    pictures = [drawn(kind, data_sample) for kind in (DetectronVisualizer, DetLocalVisualizer)]
    assert np.array_equal(*pictures)
