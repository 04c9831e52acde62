"""Predictions of small models on images of every kind, without any other file."""

import json
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from sn_openmmlab.errors import UsageError
from sn_openmmlab.prediction.images import find_images
from sn_openmmlab.prediction.prediction import Predictor
from sn_openmmlab.prediction.run import build_predictor, check_device, predict_images


def _check_predictions(predict: Predictor, images: Path, out: Path) -> dict:
    """Predict on images of every kind and return the records by the names of their files."""
    files = find_images([images])
    predict_images(predict, files, out)
    records = {}
    for file in files:
        record = json.loads((out / 'preds' / f'{file.stem}.json').read_text())
        assert record.pop('image') == str(file)
        (picture,) = (out / 'vis').glob(f'{file.stem}.*')
        # What a viewer shows, so EXIF's rotation counts.
        assert cv2.imread(str(picture)).shape == cv2.imread(str(file)).shape
        records[file.stem] = record
    return records


def test_detector_takes_images_of_every_kind(
    detection_config: Path, untrained: Callable, odd_images: Path, tmp_path: Path
) -> None:
    config, checkpoint = untrained(detection_config)
    # Drawing takes most of the time.
    config.model.test_cfg.rcnn.max_per_img = 10
    predict = build_predictor(config, checkpoint, 'cpu', 0)
    records = _check_predictions(predict, odd_images, tmp_path)
    for record in records.values():
        assert record.keys() == {'labels', 'class_names', 'scores', 'bboxes'}
        assert len(record['bboxes']) == len(record['scores']) == len(record['labels'])
        names = [('bright', 'dark')[label] for label in record['labels']]
        assert record['class_names'] == names
    # 40 wide and 60 high, as the picture is seen.
    boxes = np.array(records['turned']['bboxes'])
    assert (boxes[:, 2:].max(0) <= (40, 60)).all()
    assert boxes[:, 3].max() > 40


def test_segmenter_takes_images_of_every_kind(
    segmentation_config: Path, untrained: Callable, odd_images: Path, tmp_path: Path
) -> None:
    predict = build_predictor(*untrained(segmentation_config), 'cpu')
    records = _check_predictions(predict, odd_images, tmp_path)
    for name, record in records.items():
        label_map = cv2.imread(str(tmp_path / 'preds' / record['label_map']), -1)
        (image,) = odd_images.glob(f'{name}.*')
        assert label_map.shape == cv2.imread(str(image)).shape[:2]
        shares = {one['label']: one['share'] for one in record['classes']}
        assert shares == {label: (label_map == label).mean() for label in np.unique(label_map)}
        assert list(shares.values()) == sorted(shares.values(), reverse=True)
        names = [('bright', 'dark')[label] for label in shares]
        assert [one['class_name'] for one in record['classes']] == names


def test_start_of_the_training_is_not_needed(
    segmentation_config: Path, untrained: Callable, odd_images: Path
) -> None:
    config, checkpoint = untrained(segmentation_config, norm='SN')
    config.model.pretrained = 'https://example.org/backbone.pth'
    config.model.backbone.init_cfg = dict(type='SNPretrained', checkpoint='absent.pth')
    prediction = build_predictor(config, checkpoint, 'cpu')(str(odd_images / 'turned.jpg'))
    assert prediction.label_map.shape == (60, 40)


def test_checkpoint_of_another_model_is_refused(
    segmentation_config: Path, detection_config: Path, untrained: Callable
) -> None:
    config, _ = untrained(segmentation_config)
    _, checkpoint = untrained(detection_config)
    with pytest.raises(UsageError, match=f'{checkpoint} cannot be evaluated by this config'):
        build_predictor(config, checkpoint, 'cpu')


def test_score_is_for_detections(segmentation_config: Path, untrained: Callable) -> None:
    with pytest.raises(UsageError, match='--score-thr is for detections'):
        build_predictor(*untrained(segmentation_config), 'cpu', 0.5)


def test_option_that_a_model_does_not_take_is_one_sentence(
    segmentation_config: Path, untrained: Callable
) -> None:
    config, checkpoint = untrained(segmentation_config)
    config.model.backbone.colour = 'red'
    with pytest.raises(UsageError, match=r'cannot be built: .*colour'):
        build_predictor(config, checkpoint, 'cpu')


def test_device_must_be_there() -> None:
    check_device('cpu')
    with pytest.raises(UsageError, match='--device abacus cannot be used: '):
        check_device('abacus')
