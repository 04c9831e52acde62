"""Pictures of what a model predicts, beside the ground truth."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mmcv
import numpy as np
import torch
from matplotlib.figure import Figure
from mmengine.dataset import pseudo_collate
from mmengine.runner import Runner
from mmengine.structures import BaseDataElement

from sn_openmmlab.analysis.instances import draw_instances
from sn_openmmlab.analysis.labels import draw_labels
from sn_openmmlab.errors import UsageError

PAIRS_PER_ROW = 2
# One small picture says all about a label.
LABELS_PER_ROW = 8


class _Sample(NamedTuple):
    """What the model predicts for an item of the validation data."""

    item: dict[str, Any]
    prediction: BaseDataElement


@torch.no_grad()
def draw_prediction_grid(
    runner: Runner, file: str | Path, count: int = 8, score: float = 0.5
) -> None:
    """Draw ground truth and prediction of images spread over the validation data.

    Args:
        runner: of any toolbox, with its weights loaded. Its visualizer draws label maps.
        file: where the picture goes.
        count: how many images, two a row; of a classifier four times as many, eight a row.
        score: detections with a lower score are left out.

    Raises:
        UsageError: the model predicts neither boxes, masks nor classes, and its visualizer draws
            nothing.
    """
    first = _predict(runner, 0)
    labelled = 'pred_label' in first.prediction
    total = len(runner.val_dataloader.dataset)
    places = np.linspace(0, total - 1, min(4 * count if labelled else count, total), dtype=int)
    samples = [first, *(_predict(runner, int(place)) for place in places[1:])]
    figure = _label_grid(runner, samples) if labelled else _pair_grid(runner, samples, score)
    figure.savefig(file, dpi=100)


def _predict(runner: Runner, place: int) -> _Sample:
    runner.model.eval()
    item = runner.val_dataloader.dataset[place]
    return _Sample(item, runner.model.val_step(pseudo_collate([item]))[0])


def _classes(runner: Runner) -> Sequence[str]:
    return runner.val_dataloader.dataset.metainfo.get('classes') or ()


def _label_grid(runner: Runner, samples: Sequence[_Sample]) -> Figure:
    rows = -(-len(samples) // LABELS_PER_ROW)
    figure = Figure(figsize=(12, 1.9 * rows), layout='constrained')
    panes = figure.subplots(rows, LABELS_PER_ROW, squeeze=False).ravel()
    for axes in panes:
        axes.axis('off')
    for axes, sample in zip(panes, samples, strict=False):
        axes.imshow(_image(sample))
        draw_labels(axes, sample.prediction, _classes(runner))
    return figure


def _pair_grid(runner: Runner, samples: Sequence[_Sample], score: float) -> Figure:
    rows = -(-len(samples) // PAIRS_PER_ROW)
    figure = Figure(figsize=(12, 2.5 * rows), layout='constrained')
    panes = figure.subplots(rows, 2 * PAIRS_PER_ROW, squeeze=False).reshape(-1, 2)
    for axes in panes.ravel():
        axes.axis('off')
    for pair, sample in zip(panes, samples, strict=False):
        _show_images(pair, runner, sample)
    # The labels of boxes need the final place of their image.
    figure.draw_without_rendering()
    figure.set_layout_engine('none')
    for pair, sample in zip(panes, samples, strict=False):
        if _is_detection(sample.prediction):
            _draw_detections(pair, sample.prediction, _classes(runner), score)
    return figure


def _image(sample: _Sample) -> np.ndarray:
    """Return the image of a sample as it was before the pipeline, in RGB."""
    file = sample.prediction.get('img_path')
    if file is None:
        # MMPretrain's CIFAR and MNIST have no files, and keep their images in RGB.
        return sample.item['inputs'].permute(1, 2, 0).squeeze(2).numpy()
    return mmcv.imread(file, channel_order='rgb')


def _is_detection(sample: BaseDataElement) -> bool:
    return 'pred_instances' in sample and 'pred_panoptic_seg' not in sample


def _show_images(pair: np.ndarray, runner: Runner, sample: _Sample) -> None:
    image = _image(sample)
    predicted = sample.prediction
    images = [image] * 2 if _is_detection(predicted) else _draw_maps(runner, predicted, image)
    for axes, shown, title in zip(pair, images, ('ground truth', 'prediction'), strict=True):
        height, width, _ = shown.shape
        axes.imshow(shown, extent=(0, width, height, 0))
        axes.set_title(title, fontsize=11)


def _draw_maps(runner: Runner, sample: BaseDataElement, image: np.ndarray) -> list[np.ndarray]:
    # Only the file is sure to have both: what get_image() gives differs between the toolboxes.
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / 'pair.png')
        runner.visualizer.add_datasample('pair', image, sample, show=False, out_file=file)
        if not Path(file).is_file():
            raise UsageError(
                f'the report cannot show what {type(runner.model).__name__} predicts '
                f'({", ".join(sample.keys()) or "nothing"}): it draws boxes, masks, label maps and '
                'classes.'
            )
        return np.split(mmcv.imread(file, channel_order='rgb'), 2, axis=1)


def _draw_detections(
    pair: np.ndarray, sample: BaseDataElement, classes: Sequence[str], score: float
) -> None:
    detected = sample.pred_instances
    if 'gt_instances' in sample:
        draw_instances(pair[0], sample.gt_instances, classes)
    draw_instances(pair[1], detected[detected.scores > score], classes)
