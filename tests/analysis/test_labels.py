"""The class above an image says what is predicted, how surely, and whether it is true."""

import pytest
import torch
from matplotlib.figure import Figure
from mmengine.structures import BaseDataElement

from sn_openmmlab.analysis.labels import RIGHT, WRONG, draw_labels

CLASSES = ('cat', 'dog', 'tench, Tinca tinca', 'a name that is far too long')


def title(classes: tuple[str, ...] = CLASSES, **fields: object) -> tuple[str, str]:
    """Return the title of an image with this prediction, and its colour."""
    axes = Figure().subplots()
    tensors = {name: torch.tensor(value) for name, value in fields.items()}
    draw_labels(axes, BaseDataElement(**tensors), classes)
    return axes.get_title(), axes.title.get_color()


def test_right_and_wrong() -> None:
    score = [0.125, 0.875, 0.0, 0.0]
    assert title(pred_label=[1], gt_label=[1], pred_score=score) == ('dog: 0.88', RIGHT)
    assert title(pred_label=[1], gt_label=[0], pred_score=score) == ('dog: 0.88\nnot cat', WRONG)


def test_without_the_truth_there_is_no_verdict() -> None:
    text, color = title(pred_label=[0], pred_score=[1.0, 0.0, 0.0, 0.0])
    assert text == 'cat: 1.00'
    assert color not in (RIGHT, WRONG)


@pytest.mark.parametrize(
    ('label', 'text'),
    [(2, 'tench'), (3, 'a name that is fa…'), (7, 'class 7')],
)
def test_names(label: int, text: str) -> None:
    assert title(pred_label=[label])[0] == text


def test_several_labels() -> None:
    assert title(pred_label=[1, 0], gt_label=[0, 1]) == ('dog, cat', RIGHT)
    empty = torch.zeros(0, dtype=torch.long).tolist()
    text, color = title(pred_label=empty, gt_label=[0])
    assert (text, color) == ('none\nnot cat', WRONG)
