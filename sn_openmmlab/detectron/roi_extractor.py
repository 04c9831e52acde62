"""The level of the pyramid from the size of a box that holds both of its ends."""

import torch
from mmdet.models.roi_heads.roi_extractors import SingleRoIExtractor
from mmdet.registry import MODELS
from torch import Tensor

from sn_openmmlab.detectron.both_ends import edges


@MODELS.register_module()
class DetectronRoIExtractor(SingleRoIExtractor):
    """`SingleRoIExtractor` that takes the area of a box as `(w + 1) · (h + 1)`.

    The arguments are the same.
    """

    def map_roi_levels(self, rois: Tensor, num_levels: int) -> Tensor:
        """Return the index of the level of each box, (N,).

        Args:
            rois: Image, x1, y1, x2, y2: shape (N, 5).
            num_levels: The number of levels.
        """
        _, x1, y1, x2, y2 = edges(rois).unbind(1)
        # A box narrower than a pixel has a negative area after the image was enlarged.
        side = ((x2 - x1) * (y2 - y1)).clamp(min=0).sqrt()
        # Theirs is 1e-6 of the side of the third level, and MMDetection's 1e-6 of the first one's.
        levels = 2 + torch.log2(side / (4 * self.finest_scale) + 1e-6)
        return levels.floor().clamp(0, num_levels - 1).long()
