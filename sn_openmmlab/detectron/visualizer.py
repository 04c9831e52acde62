"""Drawing of boxes that hold both of their ends."""

import copy
from typing import Any

import numpy as np
import torch
from mmdet.registry import VISUALIZERS
from mmdet.structures import DetDataSample
from mmdet.visualization import DetLocalVisualizer
from torch import Tensor

from sn_openmmlab.detectron.both_ends import edges


@VISUALIZERS.register_module()
class DetectronVisualizer(DetLocalVisualizer):
    """`DetLocalVisualizer` for predictions of width `x2 - x1 + 1`; the arguments are the same.

    A box narrower than a pixel has its last pixel before its first one, which MMDetection refuses
    to draw. The ground truth is drawn as MMDetection has it.
    """

    def add_datasample(
        self,
        name: str,
        image: np.ndarray,
        data_sample: DetDataSample | None = None,
        *args: Any,
        **options: Any,
    ) -> None:
        """Draw an image and what is found in it; the arguments are those of the base class."""
        if data_sample is not None and 'pred_instances' in data_sample:
            data_sample = copy.copy(data_sample)
            data_sample.pred_instances = copy.copy(data_sample.pred_instances)
            data_sample.pred_instances.bboxes = _drawable(data_sample.pred_instances.bboxes)
        super().add_datasample(name, image, data_sample, *args, **options)


def _drawable(boxes: Tensor) -> Tensor:
    first, last = edges(boxes).split(2, 1)
    # In the frame of an image that was made smaller, a width may be negative.
    return torch.cat([first, first.maximum(last)], 1)
