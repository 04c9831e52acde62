"""Boxes and masks of detected or annotated objects, drawn over an image."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox

from sn_openmmlab.analysis.colors import BOXES

_MASK_OPACITY = 0.5
_LABEL_PAD = 1
_OUTLINE = [withStroke(linewidth=3, foreground='black')]


def draw_instances(axes: Axes, instances: Any, classes: Sequence[str]) -> None:
    """Draw the box, the mask and the label of each instance, a colour per class.

    Labels move from corner to corner of their box until they overlap none of the earlier ones.

    Args:
        axes: shows the image already, with the extent (0, width, height, 0).
        instances: of MMDetection, with `labels` and `bboxes` (N, 4), and with
            `masks` (N, height, width) and `scores` if there are any.
        classes: the names of the labels; `class 7` stands for a missing name.
    """
    labels = instances.labels.tolist()
    masks = _masks(instances)
    scores = instances.scores.tolist() if 'scores' in instances else [None] * len(labels)
    for mask, label in zip(masks, labels, strict=False):
        _draw_mask(axes, mask, _color(label))
    taken: list[Bbox] = []
    for box, label, score in zip(_boxes(instances, masks), labels, scores, strict=True):
        _draw_box(axes, box, _color(label))
        name = classes[label] if label < len(classes) else f'class {label}'
        text = name if score is None else f'{name}: {score:.2f}'
        _draw_label(axes, text, box, _color(label), taken)


def _color(label: int) -> str:
    return BOXES[label % len(BOXES)]


def _masks(instances: Any) -> np.ndarray:
    masks = instances.get('masks', np.zeros((0, 0, 0)))
    if hasattr(masks, 'to_ndarray'):
        masks = masks.to_ndarray()
    return torch.as_tensor(masks).cpu().numpy().astype(bool)


def _boxes(instances: Any, masks: np.ndarray) -> np.ndarray:
    boxes = instances.bboxes
    boxes = getattr(boxes, 'tensor', boxes).cpu().numpy().reshape(-1, 4)
    if boxes.any() or not len(masks):
        return boxes
    # Models without a box head, such as SOLO, give boxes of zeros beside their masks.
    return np.array([_extent(mask) for mask in masks])


def _extent(mask: np.ndarray) -> tuple[int, int, int, int]:
    rows, columns = np.nonzero(mask)
    if not len(rows):
        return 0, 0, 0, 0
    return columns.min(), rows.min(), columns.max() + 1, rows.max() + 1


def _draw_mask(axes: Axes, mask: np.ndarray, color: str) -> None:
    height, width = mask.shape
    overlay = np.zeros((height, width, 4))
    overlay[mask] = to_rgba(color, _MASK_OPACITY)
    axes.imshow(overlay, extent=(0, width, height, 0))


def _draw_box(axes: Axes, box: np.ndarray, color: str) -> None:
    left, top, right, bottom = box
    rectangle = Rectangle((left, top), right - left, bottom - top, fill=False, linewidth=1.6)
    rectangle.set(edgecolor=color, path_effects=_OUTLINE)
    axes.add_patch(rectangle)


def _draw_label(axes: Axes, text: str, box: np.ndarray, color: str, taken: list[Bbox]) -> None:
    background = dict(facecolor=color, edgecolor='none', pad=_LABEL_PAD)
    label = axes.text(0, 0, text, fontsize=8, color='black', clip_on=True, bbox=background)
    left, top, right, bottom = box
    for x, y, horizontal, vertical in (
        # Above and below the box.
        (left, top, 'left', 'bottom'),
        (left, bottom, 'left', 'top'),
        (right, top, 'right', 'bottom'),
        (right, bottom, 'right', 'top'),
        # Beside it.
        (right, top, 'left', 'top'),
        (left, top, 'right', 'top'),
        (right, bottom, 'left', 'bottom'),
        (left, bottom, 'right', 'bottom'),
        # Inside.
        (right, bottom, 'right', 'bottom'),
        (left, bottom, 'left', 'bottom'),
        (right, top, 'right', 'top'),
        (left, top, 'left', 'top'),
    ):
        label.set(position=(x, y), ha=horizontal, va=vertical)
        extent = label.get_window_extent()
        if _is_inside(extent, axes.bbox) and not any(extent.overlaps(other) for other in taken):
            break
    taken.append(extent.padded(2 * _LABEL_PAD))


def _is_inside(extent: Bbox, image: Bbox) -> bool:
    return (
        image.x0 <= extent.x0
        and extent.x1 <= image.x1
        and image.y0 <= extent.y0
        and extent.y1 <= image.y1
    )
