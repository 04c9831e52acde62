"""Label maps by MMSegmentation."""

import numpy as np
from mmengine.config import Config
from mmseg.apis import MMSegInferencer
from mmseg.models import BaseSegmentor

from sn_openmmlab.errors import UsageError
from sn_openmmlab.prediction.prediction import Prediction, Predictor
from sn_openmmlab.prediction.weights import TrainedWeights


class TrainedSegmenter(TrainedWeights, MMSegInferencer):
    """MMSegmentation's inferencer with weights that are known to fit."""


def segmenter(config: Config, device: str) -> Predictor:
    """Return a function that labels the pixels of an image.

    Args:
        config: of `sn_openmmlab.prediction.config.inference_config`.
        device: where the model runs.

    Raises:
        UsageError: the checkpoint does not fit, or the model is no segmenter.
    """
    inferencer = TrainedSegmenter(config, device=device)
    if not isinstance(inferencer.model, BaseSegmentor):
        kind = type(inferencer.model).__name__
        raise UsageError(f'{config.filename} is no segmenter, but a {kind}.')
    classes = inferencer.model.dataset_meta['classes']

    def predict(path: str) -> Prediction:
        (data,) = inferencer.preprocess([path])
        (sample,) = inferencer.forward(data)
        if 'pred_sem_seg' not in sample:
            raise UsageError(f'{config.filename} is of a model that predicts no label maps.')
        # NumPy takes a tensor of one pixel for a number, where the visualizer needs a mask.
        sample = sample.numpy()
        (picture,) = inferencer.visualize([path], [sample], return_vis=True)
        label_map = sample.pred_sem_seg.data[0]
        return Prediction(picture, {'classes': _shares(label_map, classes)}, label_map)

    return predict


def _shares(label_map: np.ndarray, classes: list[str]) -> list[dict]:
    """Return each class in a label map with its share of the pixels, the largest first."""
    labels, counts = np.unique(label_map, return_counts=True)
    largest_first = np.argsort(-counts, kind='stable')
    return [
        {
            'label': int(labels[i]),
            'class_name': classes[labels[i]],
            'share': counts[i].item() / label_map.size,
        }
        for i in largest_first
    ]
