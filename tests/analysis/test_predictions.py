"""The grid of predictions, drawn by stand-ins for the visualizers of the toolboxes."""

from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from matplotlib.image import imread
from mmengine.structures import BaseDataElement

from sn_openmmlab.analysis.predictions import draw_prediction_grid

RED, BLUE = (255, 0, 0), (0, 0, 255)


class Visualizer:
    """Draws red for the truth and blue for the prediction, and keeps the prediction alone."""

    def add_datasample(
        self,
        name: str,
        image: np.ndarray,
        data_sample: BaseDataElement,
        show: bool,
        out_file: str,
        **options: float,
    ) -> None:
        self.scores = options
        pair = np.concatenate([np.full_like(image, RED), np.full_like(image, BLUE)], 1)
        cv2.imwrite(out_file, pair[..., ::-1])

    def get_image(self) -> np.ndarray:
        return np.full((8, 8, 3), BLUE, np.uint8)


class Model:
    """Predicts the sample that it is given, and remembers which."""

    def __init__(self) -> None:
        self.seen = []

    def eval(self) -> None:
        pass

    def val_step(self, batch: dict) -> list:
        self.seen.append(batch['index'][0])
        return batch['data_samples']


def fake_runner(count: int, visualizer: object, folder: Path, **fields: object) -> SimpleNamespace:
    """A runner with a validation set of so many images."""
    file = folder / 'image.png'
    cv2.imwrite(str(file), np.zeros((40, 60, 3), np.uint8))
    sample = BaseDataElement(metainfo=dict(img_path=str(file)), **fields)
    dataset = [dict(index=i, data_samples=sample) for i in range(count)]
    loader = SimpleNamespace(dataset=dataset)
    return SimpleNamespace(val_dataloader=loader, model=Model(), visualizer=visualizer)


def share(picture: np.ndarray, color: tuple) -> float:
    """How much of a picture has a color."""
    return float((np.abs(picture[..., :3] - np.array(color) / 255) < 0.02).all(-1).mean())


def test_truth_stands_beside_the_prediction(tmp_path: Path) -> None:
    runner = fake_runner(2, Visualizer(), tmp_path, pred_sem_seg=BaseDataElement())
    draw_prediction_grid(runner, tmp_path / 'grid.png')
    picture = imread(tmp_path / 'grid.png')
    assert share(picture, RED) == pytest.approx(share(picture, BLUE), rel=0.05)
    assert share(picture, RED) > 0.2
    assert runner.visualizer.scores == {}


def test_detections_below_the_score_are_left_out(tmp_path: Path) -> None:
    runner = fake_runner(1, Visualizer(), tmp_path, pred_instances=BaseDataElement())
    draw_prediction_grid(runner, tmp_path / 'grid.png', score=0.25)
    assert runner.visualizer.scores == {'pred_score_thr': 0.25}


@pytest.mark.parametrize(
    ('images', 'count', 'seen', 'rows'),
    [
        (1, 8, [0], 1),
        (3, 8, [0, 1, 2], 2),
        (100, 4, [0, 33, 66, 99], 2),
        (8, 8, list(range(8)), 4),
    ],
)
def test_images_are_spread_over_the_data(
    images: int, count: int, seen: list[int], rows: int, tmp_path: Path
) -> None:
    runner = fake_runner(images, Visualizer(), tmp_path)
    draw_prediction_grid(runner, tmp_path / 'grid.png', count=count)
    assert runner.model.seen == seen
    assert imread(tmp_path / 'grid.png').shape == (int(2.9 * rows * 110), 14 * 110, 4)
