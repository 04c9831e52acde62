"""Boxes, masks and panoptic maps by MMDetection."""

from typing import Any

import numpy as np
from mmdet.apis import DetInferencer
from mmdet.evaluation import INSTANCE_OFFSET
from mmdet.models import BaseDetector
from mmdet.structures import DetDataSample
from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from sn_openmmlab.prediction.prediction import Prediction, Predictor
from sn_openmmlab.prediction.weights import TrainedWeights


class TrainedDetector(TrainedWeights, DetInferencer):
    """MMDetection's inferencer with weights that are known to fit."""


def detector(config: Config, device: str, score_thr: float) -> Predictor:
    """Return a function that detects objects in an image.

    Args:
        config: of `sn_openmmlab.prediction.config.inference_config`.
        device: where the model runs.
        score_thr: the picture shows detections with a higher score; the record has all.

    Raises:
        UsageError: the checkpoint does not fit, or the model is no detector.
    """
    inferencer = TrainedDetector(config, device=device)
    if not isinstance(inferencer.model, BaseDetector):
        kind = type(inferencer.model).__name__
        raise UsageError(f'{config.filename} is no detector of single images, but a {kind}.')
    classes = inferencer.model.dataset_meta['classes']

    def predict(path: str) -> Prediction:
        ((_, data),) = inferencer.preprocess([path])
        (sample,) = inferencer.forward(data)
        segments, label_map = _segments(sample, classes)
        if not segments:
            # The visualizer cannot draw a map without any.
            sample.pop('pred_panoptic_seg', None)
        (picture,) = inferencer.visualize(
            [path], [sample], return_vis=True, pred_score_thr=score_thr
        )
        # Its own record of a map needs a package that MMDetection does not bring.
        sample.pop('pred_panoptic_seg', None)
        record = inferencer.pred2dict(sample)
        if 'labels' in record:
            record['class_names'] = [classes[label] for label in record['labels']]
        if label_map is not None:
            record['segments'] = segments
        return Prediction(picture, record, label_map)

    return predict


def _segments(
    sample: DetDataSample, classes: list[str]
) -> tuple[list[dict[str, Any]], np.ndarray | None]:
    """Return the panoptic segments of an image and the map of their ids; 0 is no segment."""
    if 'pred_panoptic_seg' not in sample:
        return [], None
    found = sample.pred_panoptic_seg.sem_seg[0].cpu().numpy()
    label_map = np.zeros(found.shape, np.uint16)
    segments = []
    for value in np.unique(found):
        label = int(value % INSTANCE_OFFSET)
        # MMDetection gives the next label to what it leaves open.
        if label < len(classes):
            mask = found == value
            segment = dict(id=len(segments) + 1, label=label, class_name=classes[label])
            segments.append({**segment, 'area': int(mask.sum())})
            label_map[mask] = len(segments)
    return segments, label_map
