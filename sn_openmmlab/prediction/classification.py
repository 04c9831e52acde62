"""Classes by MMPretrain."""

import mmcv
import numpy as np
import torch
from mmengine.config import Config
from mmpretrain.apis import ImageClassificationInferencer, get_model
from mmpretrain.models import BaseClassifier
from mmpretrain.visualization import UniversalVisualizer

from sn_openmmlab.errors import UsageError
from sn_openmmlab.prediction.prediction import Prediction, Predictor
from sn_openmmlab.prediction.weights import load_trained

# In pixels; on less the text cannot be read.
_SHORT_EDGE = 224
_LONG_EDGE = 2240


def classifier(config: Config, device: str) -> Predictor:
    """Return a function that classifies an image.

    Args:
        config: of `sn_openmmlab.prediction.config.inference_config`.
        device: where the model runs.

    Raises:
        UsageError: the checkpoint does not fit, or the model is no classifier.
    """
    model = get_model(config, pretrained=False)
    if not isinstance(model, BaseClassifier):
        raise UsageError(f'{config.filename} is no classifier, but a {type(model).__name__}.')
    load_trained(model, config)
    classes = model.dataset_meta['classes']
    inferencer = ImageClassificationInferencer(model.to(device), classes=classes)
    visualizer = UniversalVisualizer()

    def predict(path: str) -> Prediction:
        (data,) = inferencer.preprocess([path])
        (sample,) = inferencer.forward(data)
        if 'pred_score' not in sample:
            raise UsageError(f'{config.filename} is of a model that gives classes no scores.')
        image = mmcv.imread(path, channel_order='rgb')
        picture = visualizer.visualize_cls(
            image, sample, classes=classes, draw_gt=False, rescale_factor=_enlargement(image)
        )
        return Prediction(picture, _record(sample.pred_score, classes))

    return predict


def _record(scores: torch.Tensor, classes: list[str]) -> dict:
    label = int(scores.argmax())
    return {
        'label': label,
        'class_name': classes[label],
        'score': scores[label].item(),
        'scores': scores.tolist(),
    }


def _enlargement(image: np.ndarray) -> float:
    """Return by how much an image is enlarged, so that the text on it can be read."""
    short, *_, long = sorted(image.shape[:2])
    return max(1.0, min(_SHORT_EDGE / short, _LONG_EDGE / long))
