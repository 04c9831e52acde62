"""Pictures of what a model predicts, beside the ground truth."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mmcv
import numpy as np
import torch
from matplotlib.figure import Figure
from mmengine.dataset import pseudo_collate
from mmengine.runner import Runner
from mmengine.structures import BaseDataElement

from sn_openmmlab.analysis.instances import draw_instances

PAIRS_PER_ROW = 2


@torch.no_grad()
def draw_prediction_grid(
    runner: Runner, file: str | Path, count: int = 8, score: float = 0.5
) -> None:
    """Draw ground truth and prediction of images spread over the validation data.

    Args:
        runner: of any toolbox, with its weights loaded. Its visualizer draws label maps.
        file: where the picture goes.
        count: how many images, two a row.
        score: detections with a lower score are left out.
    """
    dataset = runner.val_dataloader.dataset
    chosen = np.linspace(0, len(dataset) - 1, min(count, len(dataset)), dtype=int)
    samples = [_predict(runner, dataset[int(index)]) for index in chosen]
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
        if _is_detection(sample):
            _draw_detections(pair, sample, dataset.metainfo.get('classes', ()), score)
    figure.savefig(file, dpi=100)


def _predict(runner: Runner, item: dict[str, Any]) -> BaseDataElement:
    runner.model.eval()
    return runner.model.val_step(pseudo_collate([item]))[0]


def _is_detection(sample: BaseDataElement) -> bool:
    return 'pred_instances' in sample and 'pred_panoptic_seg' not in sample


def _show_images(pair: np.ndarray, runner: Runner, sample: BaseDataElement) -> None:
    image = mmcv.imread(sample.img_path, channel_order='rgb')
    images = [image, image] if _is_detection(sample) else _draw_label_maps(runner, sample, image)
    for axes, shown, title in zip(pair, images, ('ground truth', 'prediction'), strict=True):
        height, width, _ = shown.shape
        axes.imshow(shown, extent=(0, width, height, 0))
        axes.set_title(title, fontsize=11)


def _draw_label_maps(
    runner: Runner, sample: BaseDataElement, image: np.ndarray
) -> list[np.ndarray]:
    # Only the file is sure to have both: what get_image() gives differs between the toolboxes.
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / 'pair.png')
        runner.visualizer.add_datasample('pair', image, sample, show=False, out_file=file)
        return np.split(mmcv.imread(file, channel_order='rgb'), 2, axis=1)


def _draw_detections(
    pair: np.ndarray, sample: BaseDataElement, classes: Sequence[str], score: float
) -> None:
    detected = sample.pred_instances
    if 'gt_instances' in sample:
        draw_instances(pair[0], sample.gt_instances, classes)
    draw_instances(pair[1], detected[detected.scores > score], classes)
