"""Boxes, masks and labels of instances, read back as artists of matplotlib."""

from itertools import combinations

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from mmengine.structures import InstanceData

from sn_openmmlab.analysis.colors import BOXES
from sn_openmmlab.analysis.instances import draw_instances

CLASSES = tuple('abcdefgh')


@pytest.fixture
def axes() -> Axes:
    """Axes that show an image of 120 by 90 pixels."""
    figure = Figure(figsize=(4, 3))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(np.zeros((90, 120, 3), np.uint8), extent=(0, 120, 90, 0))
    return axes


def instances(boxes: list, labels: list[int], **fields: torch.Tensor) -> InstanceData:
    return InstanceData(bboxes=torch.tensor(boxes).float(), labels=torch.tensor(labels), **fields)


def test_boxes_have_the_colors_of_their_classes(axes: Axes) -> None:
    draw_instances(axes, instances([[10, 20, 40, 60], [50, 30, 90, 80]], [1, 7]), CLASSES)
    assert [patch.get_bbox().extents.tolist() for patch in axes.patches] == [
        [10, 20, 40, 60],
        [50, 30, 90, 80],
    ]
    colors = [to_hex(patch.get_edgecolor()) for patch in axes.patches]
    assert colors == [BOXES[1], BOXES[7 % 6]]


def test_labels_say_the_class_and_the_score_of_a_detection(axes: Axes) -> None:
    box = [[10, 20, 40, 60]]
    draw_instances(axes, instances(box, [2]), CLASSES)
    draw_instances(axes, instances(box, [2], scores=torch.tensor([0.876])), CLASSES)
    assert [text.get_text() for text in axes.texts] == ['c', 'c: 0.88']


def test_label_without_a_name_says_its_number(axes: Axes) -> None:
    draw_instances(axes, instances([[10, 20, 40, 60]], [7]), ())
    assert [text.get_text() for text in axes.texts] == ['class 7']


@pytest.mark.parametrize('place', [(0, 0), (95, 0), (0, 60), (95, 60), (40, 30)])
def test_labels_of_equal_boxes_do_not_overlap_and_stay_inside(
    place: tuple[int, int], axes: Axes
) -> None:
    x, y = place
    boxes = [[x, y, x + 25, y + 30]] * 2
    draw_instances(axes, instances(boxes, [0, 1], scores=torch.tensor([0.9, 0.8])), CLASSES)
    extents = [text.get_window_extent() for text in axes.texts]
    assert not any(one.overlaps(other) for one, other in combinations(extents, 2))
    for extent in extents:
        assert axes.bbox.x0 <= extent.x0 < extent.x1 <= axes.bbox.x1
        assert axes.bbox.y0 <= extent.y0 < extent.y1 <= axes.bbox.y1


def test_more_labels_than_places_are_all_drawn(axes: Axes) -> None:
    count = 12
    draw_instances(axes, instances([[40, 30, 70, 60]] * count, [0] * count), CLASSES)
    assert len(axes.texts) == count


def test_mask_covers_its_pixels_half(axes: Axes) -> None:
    mask = torch.zeros(1, 90, 120, dtype=torch.bool)
    mask[0, 20:60, 10:40] = True
    draw_instances(axes, instances([[10, 20, 40, 60]], [0], masks=mask), CLASSES)
    overlay = axes.images[-1].get_array()
    assert np.array_equal(overlay[..., 3], 0.5 * mask[0].numpy())


def test_mask_without_a_box_gets_the_box_of_its_pixels(axes: Axes) -> None:
    masks = torch.zeros(2, 90, 120, dtype=torch.bool)
    masks[0, 20:60, 10:40] = True
    draw_instances(axes, instances([[0, 0, 0, 0]] * 2, [0, 1], masks=masks), CLASSES)
    boxes = [patch.get_bbox().extents.tolist() for patch in axes.patches]
    assert boxes == [[10, 20, 40, 60], [0, 0, 0, 0]]


def test_no_instances_leave_the_image_as_it_is(axes: Axes) -> None:
    draw_instances(axes, InstanceData(bboxes=torch.zeros(0, 4), labels=torch.zeros(0)), CLASSES)
    assert (len(axes.patches), len(axes.texts), len(axes.images)) == (0, 0, 1)
