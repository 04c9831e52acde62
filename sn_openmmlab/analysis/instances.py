"""Boxes and masks of detected or annotated objects, drawn over an image."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.text import Text

from sn_openmmlab.analysis.colors import BOXES

_MASK_OPACITY = 0.5
_LABEL_PAD = 1
_OUTLINE = [withStroke(linewidth=3, foreground='black')]


def draw_instances(axes: Axes, instances: Any, classes: Sequence[str]) -> None:
    """Draw the box, the mask and the label of each instance, a colour per class.

    Labels move from corner to corner of their box until they overlap none of the earlier ones.

    Args:
        axes: shows the image already, with the extent (0, width, height, 0).
        instances: of MMDetection, with ``labels`` and ``bboxes`` (x1, y1, x2, y2), and with
            ``masks`` (height, width) and ``scores`` if there are any.
        classes: the name of each label.
    """
    labels = instances.labels.tolist()
    masks = _masks(instances)
    boxes = _boxes(instances, masks)
    scores = instances.scores.tolist() if 'scores' in instances else [None] * len(labels)
    for mask, label in zip(masks, labels, strict=False):
        _draw_mask(axes, mask, _color(label))
    placed: list[Text] = []
    for box, label, score in zip(boxes, labels, scores, strict=True):
        left, top, right, bottom = box
        axes.add_patch(
            Rectangle(
                (left, top),
                right - left,
                bottom - top,
                fill=False,
                edgecolor=_color(label),
                linewidth=1.6,
                path_effects=_OUTLINE,
            )
        )
        said = classes[label] if score is None else f'{classes[label]}: {score:.2f}'
        placed.append(_place_label(axes, said, box, _color(label), placed))


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
    overlay[..., :3] = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    overlay[..., 3] = _MASK_OPACITY * mask
    axes.imshow(overlay, extent=(0, width, height, 0))


def _place_label(
    axes: Axes, said: str, box: np.ndarray, color: str, placed: Sequence[Text]
) -> Text:
    left, top, right, bottom = box
    text = axes.text(
        left,
        top,
        said,
        fontsize=8,
        color='black',
        clip_on=True,
        bbox=dict(facecolor=color, edgecolor='none', pad=_LABEL_PAD),
    )
    # Above and below the box, then beside it, then inside.
    corners = [
        (left, top, 'left', 'bottom'),
        (left, bottom, 'left', 'top'),
        (right, top, 'right', 'bottom'),
        (right, bottom, 'right', 'top'),
        (right, top, 'left', 'top'),
        (left, top, 'right', 'top'),
        (right, bottom, 'left', 'bottom'),
        (left, bottom, 'right', 'bottom'),
        (right, bottom, 'right', 'bottom'),
        (left, bottom, 'left', 'bottom'),
        (right, top, 'right', 'top'),
        (left, top, 'left', 'top'),
    ]
    for x, y, horizontal, vertical in corners:
        text.set(position=(x, y), ha=horizontal, va=vertical)
        if _is_free(axes, text, placed):
            break
    return text


def _is_free(axes: Axes, text: Text, placed: Sequence[Text]) -> bool:
    here = text.get_window_extent()
    image = axes.bbox
    inside = (
        image.x0 <= here.x0 and here.x1 <= image.x1 and image.y0 <= here.y0 and here.y1 <= image.y1
    )
    others = (other.get_window_extent().padded(2 * _LABEL_PAD) for other in placed)
    return inside and not any(here.overlaps(other) for other in others)
