"""Pictures of what a model predicts, beside the truth."""

import tempfile
from pathlib import Path

import mmcv
import numpy as np
import torch
from matplotlib.figure import Figure
from mmengine.dataset import pseudo_collate
from mmengine.runner import Runner


@torch.no_grad()
def draw_prediction_grid(
    runner: Runner, file: str | Path, count: int = 8, score: float = 0.5
) -> None:
    """Draw truth and prediction of images spread over the validation data, two pairs a row.

    Args:
        runner: of any toolbox, with its weights loaded; its visualizer does the drawing.
        file: where the picture goes.
        count: how many images.
        score: detections below it are left out.
    """
    dataset = runner.val_dataloader.dataset
    chosen = np.linspace(0, len(dataset) - 1, min(count, len(dataset)), dtype=int)
    pairs = [_draw_pair(runner, dataset[int(index)], score) for index in chosen]
    figure = Figure(figsize=(14, 2.9 * ((len(pairs) + 1) // 2)), layout='constrained')
    axes = figure.subplots((len(pairs) + 1) // 2, 2, squeeze=False).ravel()
    for place in axes:
        place.axis('off')
    for place, pair in zip(axes, pairs, strict=False):
        place.imshow(pair)
        place.set_title('truth  |  prediction', fontsize=9)
    figure.savefig(file, dpi=110)


def _draw_pair(runner: Runner, item: dict, score: float) -> np.ndarray:
    runner.model.eval()
    sample = runner.model.val_step(pseudo_collate([item]))[0]
    image = mmcv.imread(sample.img_path, channel_order='rgb')
    options = {'pred_score_thr': score} if 'pred_instances' in sample else {}
    # Only the file is sure to have both: what get_image() gives differs between the toolboxes.
    with tempfile.TemporaryDirectory() as folder:
        options['out_file'] = str(Path(folder) / 'pair.png')
        runner.visualizer.add_datasample('pair', image, sample, show=False, **options)
        return mmcv.imread(options['out_file'], channel_order='rgb')
