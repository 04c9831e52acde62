"""What is written and drawn of boxes, masks and panoptic segments."""

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from mmdet.structures import DetDataSample
from mmengine.structures import InstanceData, PixelData
from pycocotools import mask as coco_mask

from sn_openmmlab.errors import UsageError
from sn_openmmlab.prediction import detection
from sn_openmmlab.prediction.prediction import Predictor
from sn_openmmlab.prediction.run import build_predictor

GREY = np.full((200, 300, 3), 128, np.uint8)


@pytest.fixture
def image(tmp_path: Path) -> str:
    """Return an even image, 300 wide and 200 high."""
    file = str(tmp_path / 'grey.png')
    cv2.imwrite(file, GREY)
    return file


@pytest.fixture
def predicting(
    detection_config: Path, untrained: Callable, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Predictor]:
    """Return a function (score_thr, **fields) -> a predictor whose model returns these fields."""

    def build(score_thr: float | None = None, **fields: object) -> Predictor:
        predict = build_predictor(*untrained(detection_config), 'cpu', score_thr)
        found = [DetDataSample(**fields)]
        monkeypatch.setattr(detection.TrainedDetector, 'forward', lambda self, data: found)
        return predict

    return build


def _instances() -> InstanceData:
    masks = torch.zeros(2, 200, 300, dtype=torch.bool)
    masks[0, 25:75, 50:150] = True
    masks[1, 100:175, 200:250] = True
    return InstanceData(
        labels=torch.tensor([1, 0]),
        scores=torch.tensor([0.75, 0.25]),
        bboxes=torch.tensor([[50.0, 25, 150, 75], [200, 100, 250, 175]]),
        masks=masks,
    )


def test_record_has_all_instances(predicting: Callable, image: str) -> None:
    instances = _instances()
    record = predicting(pred_instances=instances)(image).record
    rles = record.pop('masks')
    assert record == {
        'labels': [1, 0],
        'class_names': ['dark', 'bright'],
        'scores': [0.75, 0.25],
        'bboxes': [[50, 25, 150, 75], [200, 100, 250, 175]],
    }
    masks = np.stack([coco_mask.decode(rle) for rle in rles]).astype(bool)
    assert (masks == instances.masks.numpy()).all()


def test_picture_has_those_above_the_score(predicting: Callable, image: str) -> None:
    for score_thr, drawn in ((None, [True, False]), (0.2, [True, True]), (0.8, [False, False])):
        picture = predicting(score_thr, pred_instances=_instances())(image).picture
        changed = (picture != GREY).any(-1)
        # The lower right parts of both masks.
        assert [changed[60:70, 110:140].all(), changed[160:170, 230:240].any()] == drawn


def test_panoptic_segments_are_numbered(predicting: Callable, image: str) -> None:
    # Two objects of class 0, the area of class 1, and 2, which stands for no class.
    ids = torch.full((1, 200, 300), 2)
    ids[0, :50] = 1000
    ids[0, 50:100] = 2000
    ids[0, 100:150] = 1
    predict = predicting(pred_panoptic_seg=PixelData(sem_seg=ids))
    prediction = predict(image)
    assert prediction.record == {
        'segments': [
            {'id': 1, 'label': 1, 'class_name': 'dark', 'area': 15000},
            {'id': 2, 'label': 0, 'class_name': 'bright', 'area': 15000},
            {'id': 3, 'label': 0, 'class_name': 'bright', 'area': 15000},
        ]
    }
    rows = prediction.label_map[:, 0].tolist()
    assert rows == 50 * [2] + 50 * [3] + 50 * [1] + 50 * [0]
    changed = (prediction.picture != GREY).any(-1)
    assert changed[:145].mean() > 0.9
    assert not changed[155:].any()


def test_panoptic_map_may_be_empty(predicting: Callable, image: str) -> None:
    nothing = PixelData(sem_seg=torch.full((1, 200, 300), 2))
    prediction = predicting(pred_panoptic_seg=nothing)(image)
    assert prediction.record == {'segments': []}
    assert not prediction.label_map.any()


def test_model_of_another_kind_is_refused(
    detection_config: Path, untrained: Callable, tmp_path: Path
) -> None:
    config, _ = untrained(detection_config)
    config.model = dict(type='ResNet', depth=18, norm_cfg=dict(type='SN'))
    file = tmp_path / 'resnet18.pth'
    from mmdet.models import ResNet

    torch.save(ResNet(18, norm_cfg=dict(type='SN')).state_dict(), file)
    with pytest.raises(UsageError, match='is no detector of single images, but a ResNet'):
        build_predictor(config, str(file), 'cpu')
