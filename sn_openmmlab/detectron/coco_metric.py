"""COCO's evaluation of boxes that hold both of their ends."""

import numpy as np
from mmdet.evaluation.metrics import CocoMetric
from mmdet.registry import METRICS


@METRICS.register_module()
class DetectronCocoMetric(CocoMetric):
    """`CocoMetric` for predictions whose width is `x2 - x1 + 1`; the arguments are the same."""

    def xyxy2xywh(self, bbox: np.ndarray) -> list[float]:
        """Return a box (x1, y1, x2, y2) as COCO has it: x1, y1, width, height."""
        x, y, width, height = super().xyxy2xywh(bbox)
        return [x, y, width + 1, height + 1]
