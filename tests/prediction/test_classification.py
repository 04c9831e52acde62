"""Models of MMPretrain on images of every kind, and models that do not classify."""

import json
from collections.abc import Callable
from pathlib import Path

import cv2
import pytest

from sn_openmmlab.errors import UsageError
from sn_openmmlab.prediction.images import find_images
from sn_openmmlab.prediction.run import build_predictor, predict_images

pytest.importorskip('mmpretrain')

CONFIG = """
default_scope = 'mmpretrain'
backbone = dict(type='ResNet', depth=18, norm_cfg=dict(type='SN'))
data_preprocessor = dict(mean=[123.675, 116.28, 103.53], std=[58.4, 57.1, 57.4], to_rgb=True)
pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=(32, 32)),
    dict(type='PackInputs'),
]
test_dataloader = dict(dataset=dict(type='CustomDataset', data_root='absent', pipeline=pipeline))
model = {model}
"""
CLASSIFIER = """dict(
    type='ImageClassifier',
    backbone=backbone,
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='{head}', num_classes=3, in_channels=512),
)"""
CONTRASTIVE = """dict(
    type='SimCLR',
    backbone=backbone,
    neck=dict(type='NonLinearNeck', in_channels=512, hid_channels=8, out_channels=8, num_layers=2),
    head=dict(type='ContrastiveHead', loss=dict(type='CrossEntropyLoss')),
)"""


@pytest.mark.parametrize('head', ['LinearClsHead', 'MultiLabelLinearClsHead'])
def test_classifier_takes_images_of_every_kind(
    head: str, write_config: Callable, untrained: Callable, odd_images: Path, tmp_path: Path
) -> None:
    file = write_config(CONFIG.format(model=CLASSIFIER.format(head=head)))
    images, out = find_images([odd_images]), tmp_path / 'out'
    predict_images(build_predictor(*untrained(file), 'cpu'), images, out)
    for image in images:
        record = json.loads((out / f'preds/{image.stem}.json').read_text())
        scores = record['scores']
        assert len(scores) == 3
        assert record['score'] == max(scores) == scores[record['label']]
        assert record['class_name'] == f'class {record["label"]}'
        (picture,) = (out / 'vis').glob(f'{image.stem}.*')
        height, width, _ = cv2.imread(str(image)).shape
        enlarged = cv2.imread(str(picture)).shape[:2]
        # At least as high and wide as is needed to read, unless that would make a long strip.
        assert min(enlarged) == 224 or max(enlarged) == 2240
        assert enlarged[0] / enlarged[1] == pytest.approx(height / width, rel=0.02)


def test_model_that_does_not_classify_is_refused(
    write_config: Callable, untrained: Callable
) -> None:
    config, checkpoint = untrained(write_config(CONFIG.format(model=CONTRASTIVE)))
    with pytest.raises(UsageError, match='is no classifier, but a SimCLR'):
        build_predictor(config, checkpoint, 'cpu')
