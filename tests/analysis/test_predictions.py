"""The grid of predictions, drawn by stand-ins for the visualizers of the toolboxes."""

from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from matplotlib.image import imread
from mmengine.structures import BaseDataElement, InstanceData

from sn_openmmlab.analysis.colors import BOXES
from sn_openmmlab.analysis.labels import RIGHT, WRONG
from sn_openmmlab.analysis.predictions import draw_prediction_grid
from sn_openmmlab.errors import UsageError

RED, BLUE = (255, 0, 0), (0, 0, 255)


class Data(list):
    """A validation set, with the names of its classes."""

    metainfo = MappingProxyType({'classes': ('a', 'b')})


class Visualizer:
    """Draws red for the ground truth and blue for the prediction."""

    def add_datasample(
        self,
        name: str,
        image: np.ndarray,
        data_sample: BaseDataElement,
        show: bool,
        out_file: str,
    ) -> None:
        pair = np.concatenate([np.full_like(image, RED), np.full_like(image, BLUE)], 1)
        cv2.imwrite(out_file, pair[..., ::-1])


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
    """Return a runner with a validation set of so many images."""
    file = folder / 'image.png'
    cv2.imwrite(str(file), np.zeros((40, 60, 3), np.uint8))
    sample = BaseDataElement(metainfo=dict(img_path=str(file)), **fields)
    dataset = Data(dict(index=i, data_samples=sample) for i in range(count))
    loader = SimpleNamespace(dataset=dataset)
    return SimpleNamespace(val_dataloader=loader, model=Model(), visualizer=visualizer)


def rgb(color: str) -> tuple[int, ...]:
    """Return a color such as ``#e69f00`` as its three numbers."""
    return tuple(bytes.fromhex(color[1:]))


def share(picture: np.ndarray, color: tuple) -> float:
    """Return the share of a picture that has a color."""
    return float((np.abs(picture[..., :3] - np.array(color) / 255) < 0.02).all(-1).mean())


def test_ground_truth_stands_beside_the_prediction(tmp_path: Path) -> None:
    runner = fake_runner(2, Visualizer(), tmp_path, pred_sem_seg=BaseDataElement())
    draw_prediction_grid(runner, tmp_path / 'grid.png')
    picture = imread(tmp_path / 'grid.png')
    assert share(picture, RED) == pytest.approx(share(picture, BLUE), rel=0.05)
    assert share(picture, RED) > 0.2


def test_detections_below_the_score_are_left_out(tmp_path: Path) -> None:
    detected = InstanceData(
        bboxes=torch.tensor([[5.0, 5, 25, 35], [35, 5, 55, 35]]),
        labels=torch.tensor([0, 1]),
        scores=torch.tensor([0.9, 0.2]),
    )
    runner = fake_runner(1, Visualizer(), tmp_path, pred_instances=detected)
    draw_prediction_grid(runner, tmp_path / 'grid.png', score=0.25)
    drawn = imread(tmp_path / 'grid.png')
    assert share(drawn, rgb(BOXES[0])) > 0
    assert share(drawn, rgb(BOXES[1])) == 0


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
    assert imread(tmp_path / 'grid.png').shape == (250 * rows, 1200, 4)


def test_what_the_visualizer_does_not_draw_is_one_sentence(tmp_path: Path) -> None:
    class Idle:
        def add_datasample(self, *args: object, **kwargs: object) -> None:
            pass

    runner = fake_runner(1, Idle(), tmp_path, pred_caption='a dog')
    with pytest.raises(UsageError, match=r'cannot show what Model predicts \(pred_caption\): it'):
        draw_prediction_grid(runner, tmp_path / 'grid.png')
    assert not (tmp_path / 'grid.png').exists()


@pytest.mark.parametrize(('images', 'seen', 'rows'), [(3, 3, 1), (9, 9, 2), (100, 32, 4)])
def test_labelled_images_are_more_and_smaller(
    images: int, seen: int, rows: int, tmp_path: Path
) -> None:
    label = dict(pred_label=torch.tensor([1]), gt_label=torch.tensor([1]))
    runner = fake_runner(images, None, tmp_path, **label)
    draw_prediction_grid(runner, tmp_path / 'grid.png')
    assert len(runner.model.seen) == seen
    assert (runner.model.seen[0], runner.model.seen[-1]) == (0, images - 1)
    picture = imread(tmp_path / 'grid.png')
    assert picture.shape == (190 * rows, 1200, 4)
    assert share(picture, rgb(RIGHT)) > 0
    assert share(picture, rgb(WRONG)) == 0


def test_image_without_a_file_is_shown_as_it_was_loaded(tmp_path: Path) -> None:
    sample = BaseDataElement(pred_label=torch.tensor([0]))
    blue = torch.tensor(BLUE, dtype=torch.uint8).view(3, 1, 1).expand(3, 32, 32)
    dataset = Data([dict(index=0, inputs=blue, data_samples=sample)])
    loader = SimpleNamespace(dataset=dataset)
    runner = SimpleNamespace(val_dataloader=loader, model=Model(), visualizer=None)
    draw_prediction_grid(runner, tmp_path / 'grid.png')
    assert share(imread(tmp_path / 'grid.png'), BLUE) > 0.05
