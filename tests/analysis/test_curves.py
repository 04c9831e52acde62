"""The curves of a run, from a log written by hand."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from sn_openmmlab.analysis.curves import draw_curves, read_curves
from sn_openmmlab.errors import UsageError

# The colour of the first line, #0072b2.
FIRST_COLOR = np.array([0x00, 0x72, 0xB2]) / 255

DETECTION = """
{"lr": 0.01, "data_time": 0.1, "loss": 1.5, "loss_cls": 1.0, "acc": 50.0, "epoch": 1, "step": 20}
{"lr": 0.01, "data_time": 0.1, "loss": 1.0, "loss_cls": 0.75, "acc": 80.0, "epoch": 1, "step": 40}
{"coco/bbox_mAP": 0.25, "coco/bbox_mAP_s": -1.0, "data_time": 0.1, "time": 0.2, "step": 1}
{"lr": 0.01, "data_time": 0.1, "loss": 0.5, "loss_cls": 0.25, "acc": 90.0, "epoch": 2, "step": 60}
{"coco/bbox_mAP": 0.5, "coco/bbox_mAP_s": -1.0, "data_time": 0.1, "time": 0.2, "step": 2}
"""
SEGMENTATION = """
{"lr": 0.01, "loss": 0.7, "decode.loss_ce": 0.7, "decode.acc_seg": 50.0, "iter": 50, "step": 50}
{"aAcc": 90.0, "mIoU": 62.5, "mAcc": 75.0, "data_time": 0.1, "time": 0.2, "step": 100}
"""


def written(text: str, folder: Path) -> Path:
    file = folder / 'scalars.json'
    file.write_text(text.strip() + '\n')
    return file


def test_detection_has_losses_by_iteration_and_metrics_by_epoch(tmp_path: Path) -> None:
    losses, metrics = read_curves([written(DETECTION, tmp_path)])
    assert losses == {
        'loss': [(20, 1.5), (40, 1.0), (60, 0.5)],
        'loss_cls': [(20, 1.0), (40, 0.75), (60, 0.25)],
    }
    assert metrics == {
        'coco/bbox_mAP': [(1, 0.25), (2, 0.5)],
        'coco/bbox_mAP_s': [(1, -1.0), (2, -1.0)],
    }


def test_segmentation_has_metrics_without_a_prefix(tmp_path: Path) -> None:
    losses, metrics = read_curves([written(SEGMENTATION, tmp_path)])
    assert losses == {'loss': [(50, 0.7)], 'decode.loss_ce': [(50, 0.7)]}
    assert metrics == {'aAcc': [(100, 90.0)], 'mIoU': [(100, 62.5)], 'mAcc': [(100, 75.0)]}


def test_log_without_a_validation_has_no_metrics(tmp_path: Path) -> None:
    first = DETECTION.strip().split('\n')[0]
    losses, metrics = read_curves([written(first, tmp_path)])
    assert losses == {'loss': [(20, 1.5)], 'loss_cls': [(20, 1.0)]}
    assert metrics == {}


def test_diverged_loss_is_read_and_drawn(tmp_path: Path) -> None:
    lines = DETECTION.replace('"loss": 1.0', '"loss": NaN')
    lines = lines.replace('"loss": 0.5', '"loss": Infinity')
    losses, metrics = read_curves([written(lines, tmp_path)])
    assert losses['loss'][0] == (20, 1.5)
    assert np.isnan(losses['loss'][1][1])
    assert losses['loss'][2] == (60, np.inf)
    draw_curves(losses, metrics, tmp_path / 'curves.png')
    assert (tmp_path / 'curves.png').stat().st_size > 0


def test_picture_has_its_size_and_both_plots(tmp_path: Path) -> None:
    losses, metrics = read_curves([written(DETECTION, tmp_path)])
    draw_curves(losses, metrics, tmp_path / 'curves.png')
    picture = imread(tmp_path / 'curves.png')
    assert picture.shape == (4.5 * 130, 12 * 130, 4)
    for half in (picture[:, : 6 * 130], picture[:, 6 * 130 :]):
        lines = (np.abs(half[..., :3] - FIRST_COLOR) < 0.01).all(-1)
        assert lines.sum() > 300


def test_negative_metric_is_not_drawn(tmp_path: Path) -> None:
    losses, metrics = read_curves([written(DETECTION, tmp_path)])
    draw_curves(losses, metrics, tmp_path / 'with.png')
    del metrics['coco/bbox_mAP_s']
    draw_curves(losses, metrics, tmp_path / 'without.png')
    assert np.array_equal(imread(tmp_path / 'with.png'), imread(tmp_path / 'without.png'))


@pytest.mark.parametrize('top', [1.0, 100.0], ids=['shares', 'percent'])
def test_metrics_of_any_range_are_seen(top: float, tmp_path: Path) -> None:
    draw_curves({}, {'metric': [(1, 0.1 * top), (2, 0.9 * top)]}, tmp_path / 'curves.png')
    picture = imread(tmp_path / 'curves.png')
    line = (np.abs(picture[..., :3] - FIRST_COLOR) < 0.01).all(-1)
    rows = np.flatnonzero(line[:, 10 * 130 :].any(1))
    assert rows.max() - rows.min() > 0.2 * picture.shape[0]


def test_nothing_to_draw_gives_an_empty_picture(tmp_path: Path) -> None:
    draw_curves({}, {}, tmp_path / 'curves.png')
    assert imread(tmp_path / 'curves.png').shape == (4.5 * 130, 12 * 130, 4)


def test_damaged_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r'scalars.json is damaged: its line 5 is cut short'):
        read_curves([written(DETECTION[:-30], tmp_path)])


def test_continued_training_is_one_curve(tmp_path: Path) -> None:
    for name, lines in {
        'first': DETECTION,
        'again': """
{"loss": 0.4, "step": 60}
{"coco/bbox_mAP": 0.75, "time": 0.1, "data_time": 0.01, "step": 2}
{"coco/bbox_mAP": 0.8, "time": 0.1, "data_time": 0.01, "step": 3}
""",
    }.items():
        (tmp_path / name).mkdir()
        written(lines, tmp_path / name)
    losses, metrics = read_curves(tmp_path / name / 'scalars.json' for name in ('first', 'again'))
    assert losses['loss'] == [(20, 1.5), (40, 1.0), (60, 0.4)]
    assert metrics['coco/bbox_mAP'] == [(1, 0.25), (2, 0.75), (3, 0.8)]


def test_new_training_in_the_same_folder_replaces_the_old(tmp_path: Path) -> None:
    (tmp_path / 'old').mkdir()
    (tmp_path / 'new').mkdir()
    old = written(DETECTION, tmp_path / 'old')
    new = written(DETECTION.strip().split('\n')[0], tmp_path / 'new')
    losses, _ = read_curves([old, new])
    assert losses['loss'] == [(20, 1.5)]
