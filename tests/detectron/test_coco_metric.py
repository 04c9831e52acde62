"""A box that is found to the pixel has the overlap 1 with COCO's."""

import json
from pathlib import Path

import pytest
import torch

pytest.importorskip('mmdet')
from mmdet.evaluation.metrics import CocoMetric

from sn_openmmlab.detectron.coco_metric import DetectronCocoMetric


def average_precision(metric_type: type, folder: Path) -> float:
    """Return the AP for one box of 4 by 4 pixels that is found to the pixel."""
    table = dict(
        images=[dict(id=0, file_name='0.png', width=20, height=20)],
        categories=[dict(id=1, name='thing')],
        annotations=[dict(id=1, image_id=0, category_id=1, bbox=[3, 5, 4, 4], area=16, iscrowd=0)],
    )
    file = folder / 'table.json'
    file.write_text(json.dumps(table))
    metric = metric_type(ann_file=str(file), metric='bbox')
    metric.dataset_meta = dict(classes=('thing',))
    # The first and the last pixel that the box holds.
    found = dict(
        bboxes=torch.tensor([[3.0, 5, 6, 8]]), scores=torch.ones(1), labels=torch.zeros(1).long()
    )
    metric.process({}, [dict(img_id=0, ori_shape=(20, 20), pred_instances=found)])
    return metric.evaluate(1)['coco/bbox_mAP']


def test_width_counts_both_ends(tmp_path: Path) -> None:
    assert average_precision(DetectronCocoMetric, tmp_path) == 1
    # Three pixels of four each way overlap by 0.56: two of the ten thresholds.
    assert average_precision(CocoMetric, tmp_path) == 0.2
