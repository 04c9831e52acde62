"""The level of the pyramid from the size of a box that holds both of its ends."""

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
        return super().map_roi_levels(edges(rois), num_levels)
