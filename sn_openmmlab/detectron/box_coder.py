"""Deltas of boxes that hold both of their ends."""

import math
import sys

from mmdet.models.task_modules.coders import DeltaXYWHBBoxCoder
from mmdet.registry import TASK_UTILS
from mmdet.structures.bbox import HorizontalBoxes, get_box_tensor
from torch import Tensor

from sn_openmmlab.detectron.both_ends import edges

_LARGEST = math.log(1000 / 16)


@TASK_UTILS.register_module()
class DetectronBBoxCoder(DeltaXYWHBBoxCoder):
    """`DeltaXYWHBBoxCoder` for boxes of width `x2 - x1 + 1`; the arguments are the same.

    A box may shrink by any factor, but grow by 1000 / 16 at most. Boxes are clipped to the pixels 0
    to W - 1 and 0 to H - 1. MMDetection's `LegacyDeltaXYWHBBoxCoder` has other corners.
    """

    def encode(self, bboxes: Tensor, gt_bboxes: Tensor) -> Tensor:
        """Return the deltas from boxes to targets, both (N, 4): shape (N, 4)."""
        return super().encode(*(edges(get_box_tensor(boxes)) for boxes in (bboxes, gt_bboxes)))

    def decode(
        self,
        bboxes: Tensor,
        pred_bboxes: Tensor,
        max_shape: tuple[int, ...] | None = None,
        wh_ratio_clip: float = sys.float_info.min,
    ) -> Tensor:
        """Return the boxes to which deltas lead.

        Args:
            bboxes: The boxes to start from, (N, 4).
            pred_bboxes: The deltas, (N, 4·C).
            max_shape: Height and width to clip to; None does not clip.
            wh_ratio_clip: The smallest factor by which a box may shrink: none that float32 knows.

        Returns:
            Shape (N, 4·C); `HorizontalBoxes` with `use_box_type`.
        """
        means, stds = (pred_bboxes.new_tensor(x) for x in (self.means, self.stds))
        largest = pred_bboxes.new_tensor([math.inf, math.inf, _LARGEST, _LARGEST])
        deltas = pred_bboxes.unflatten(-1, (-1, 4)).minimum((largest - means) / stds)
        decoded = super().decode(
            edges(get_box_tensor(bboxes)), deltas.flatten(-2), max_shape, wh_ratio_clip
        )
        boxes = get_box_tensor(decoded)
        boxes = boxes - boxes.new_tensor([0, 0, 1, 1]).repeat(boxes.shape[-1] // 4)
        if max_shape is not None and self.clip_border:
            # The first corner may lie one pixel beyond the last one, the second one before the
            # first.
            height, width = max_shape[:2]
            last = boxes.new_tensor([width - 1, height - 1]).repeat(boxes.shape[-1] // 2)
            boxes = boxes.clamp(min=0).minimum(last)
        return HorizontalBoxes(boxes) if self.use_box_type else boxes
