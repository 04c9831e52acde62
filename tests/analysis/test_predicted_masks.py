"""The report of a model with masks shows them, annotated and predicted."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from matplotlib.image import imread
from mmdet.registry import DATASETS, MODELS
from mmdet.structures import DetDataSample
from mmengine.config import Config
from mmengine.registry import DefaultScope
from mmengine.structures import InstanceData

from sn_openmmlab.analysis.report import write_report

WIDTH, HEIGHT = 128, 96
# Two triangles with the same box: the halves of a square in the middle, below its two diagonals.
BOX = (16, 16, 112, 80)
GROUND_TRUTH = [16, 80, 112, 80, 112, 16]
PREDICTED = [16, 80, 112, 80, 16, 16]
# Places (x, y) in the box that one of the two covers alone.
IN_GROUND_TRUTH, IN_PREDICTED = (96, 48), (32, 48)
RUN = '20260101_000000'


@pytest.fixture
def coco(tmp_path: Path) -> Path:
    """A COCO data set of one blue image with the triangle of the ground truth."""
    folder = tmp_path / 'coco'
    folder.mkdir()
    blue = np.full((HEIGHT, WIDTH, 3), (255, 0, 0), np.uint8)
    cv2.imwrite(str(folder / 'blue.png'), blue)
    triangle = dict(
        id=1,
        image_id=1,
        category_id=1,
        bbox=[16, 16, 96, 64],
        area=96 * 64 / 2,
        iscrowd=0,
        segmentation=[GROUND_TRUTH],
    )
    table = dict(
        images=[dict(id=1, file_name='blue.png', width=WIDTH, height=HEIGHT)],
        annotations=[triangle],
        categories=[dict(id=1, name='x')],
    )
    (folder / 'val.json').write_text(json.dumps(table))
    return folder


def predict_triangles(count: int) -> InstanceData:
    """Return `count` predictions of the same triangle."""
    mask = cv2.fillPoly(
        np.zeros((HEIGHT, WIDTH), np.uint8), [np.array(PREDICTED).reshape(-1, 2)], 1
    )
    return InstanceData(
        bboxes=torch.tensor([BOX] * count, dtype=torch.float32).reshape(count, 4),
        labels=torch.zeros(count, dtype=torch.long),
        scores=torch.full((count,), 0.9),
        masks=torch.from_numpy(mask).bool().expand(count, -1, -1),
    )


@pytest.fixture
def runner(coco: Path, repo: Path) -> Iterator[SimpleNamespace]:
    """The part of a runner of the demo's Mask R-CNN that a report uses."""
    with DefaultScope.overwrite_default_scope('mmdet'):
        config = Config.fromfile(repo / 'configs/demo/mask-rcnn_r18_fpn_sn-all_digits.py')
        config.val_dataloader.dataset.update(
            data_root=f'{coco}/',
            ann_file='val.json',
            data_prefix=dict(img=''),
            metainfo=dict(classes=('x',)),
        )
        dataset = DATASETS.build(config.val_dataloader.dataset)
        model = MODELS.build(config.model)
        yield SimpleNamespace(
            model=model,
            val_dataloader=SimpleNamespace(dataset=dataset),
            load_checkpoint=lambda file: model.load_state_dict(torch.load(file)),
        )


def write(runner: SimpleNamespace, folder: Path, predicted: InstanceData) -> list[np.ndarray]:
    """Write a report in which the model predicts this; return the picture's two panes."""
    (folder / RUN / 'vis_data').mkdir(parents=True)
    (folder / RUN / 'vis_data/scalars.json').write_text('{"coco/segm_mAP": 0.5, "step": 1}')
    (folder / RUN / 'vis_data/config.py').touch()
    (folder / RUN / f'{RUN}.log').touch()
    torch.save(runner.model.state_dict(), folder / 'epoch_1.pth')

    def predict(_: torch.Tensor, samples: list[DetDataSample]) -> list[DetDataSample]:
        for sample in samples:
            sample.pred_instances = predicted
        return samples

    runner.model.predict = predict
    write_report(runner, folder / 'epoch_1.pth', [folder / RUN], folder / 'report')
    picture = imread(folder / 'report/predictions.png')[..., :3]
    # One image: its two panes fill the left half, with a white gap between them.
    return [_crop(pane) for pane in np.split(picture[:, :600], 2, axis=1)]


def _crop(pane: np.ndarray) -> np.ndarray:
    rows, columns = np.nonzero(is_blue(pane))
    return pane[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]


def is_blue(colors: np.ndarray) -> np.ndarray:
    """Return where colours in [0, 1] are the image's."""
    return (np.abs(colors - (0, 0, 1)) < 0.02).all(-1)


def at(half: np.ndarray, place: tuple[int, int]) -> np.ndarray:
    """Return the colour of a pane at a place in the image."""
    height, width, _ = half.shape
    return half[round(place[1] * height / HEIGHT), round(place[0] * width / WIDTH)]


def assert_is_masked(color: np.ndarray) -> None:
    """Assert that a colour is half the image's blue and half the orange #e69f00 of a mask."""
    assert color == pytest.approx((0xE6 / 510, 0x9F / 510, 0.5), abs=0.02)


def test_masks_are_drawn_in_both_panes(runner: SimpleNamespace, tmp_path: Path) -> None:
    annotated, predicted = write(runner, tmp_path, predict_triangles(1))
    assert_is_masked(at(annotated, IN_GROUND_TRUTH))
    assert is_blue(at(annotated, IN_PREDICTED))
    assert_is_masked(at(predicted, IN_PREDICTED))
    assert is_blue(at(predicted, IN_GROUND_TRUTH))


def test_image_without_predicted_masks_is_drawn(runner: SimpleNamespace, tmp_path: Path) -> None:
    annotated, predicted = write(runner, tmp_path, predict_triangles(0))
    assert_is_masked(at(annotated, IN_GROUND_TRUTH))
    assert is_blue(predicted).all()
