"""Predicting on images: from a config and a checkpoint to files."""

from collections.abc import Sequence
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope
from rich.progress import track

from sn_openmmlab.errors import UsageError
from sn_openmmlab.prediction.config import inference_config
from sn_openmmlab.prediction.output import output_names, write_prediction
from sn_openmmlab.prediction.prediction import Predictor
from sn_openmmlab.runs.errors.sentences import building

SCORE_THR = 0.3


def check_device(device: str) -> None:
    """Raise UsageError if nothing can run on a device."""
    try:
        torch.empty(0, device=device)
    # torch built without CUDA fails an assertion.
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().split('\n')[0].rstrip('.')
        raise UsageError(f'--device {device} cannot be used: {reason}.') from error


def build_predictor(
    config: Config, checkpoint: str, device: str, score_thr: float | None = None
) -> Predictor:
    """Build a model with the weights of a checkpoint, in the inferencer of its toolbox.

    Nothing else is loaded or downloaded.

    Args:
        config: of a run, as `sn_openmmlab.runs.config.read_config` returns it.
        checkpoint: the trained weights.
        device: where the model runs.
        score_thr: pictures of detections show those with a higher score; None means 0.3.

    Raises:
        UsageError: the checkpoint does not fit the model; the model cannot be built, or not be
            used on single images; ``score_thr`` is given and the model is no detector.
    """
    scope = config.default_scope
    if score_thr is not None and scope != 'mmdet':
        raise UsageError(f'--score-thr is for detections, and {config.filename} is of {scope}.')
    init_default_scope(scope)
    prepared = inference_config(config, checkpoint)
    with building(f'what {config.filename} describes', config):
        # A toolbox is imported only for its own configs.
        if scope == 'mmdet':
            from sn_openmmlab.prediction.detection import detector

            return detector(prepared, device, SCORE_THR if score_thr is None else score_thr)
        if scope == 'mmseg':
            from sn_openmmlab.prediction.segmentation import segmenter

            return segmenter(prepared, device)
        from sn_openmmlab.prediction.classification import classifier

        return classifier(prepared, device)


def predict_images(predict: Predictor, images: Sequence[Path], folder: Path) -> None:
    """Predict on each image and write the files of the prediction, with a progress bar.

    Raises:
        UsageError: a file cannot be written.
    """
    names = output_names(images)
    shown = track(zip(images, names, strict=True), 'Predicting', total=len(images))
    for image, name in shown:
        write_prediction(predict(str(image)), image, name, folder)
