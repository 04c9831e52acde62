"""Anchors whose sides are whole numbers at the stride."""

import torch
from mmdet.models.task_modules.prior_generators import AnchorGenerator
from mmdet.registry import TASK_UTILS
from torch import Tensor


@TASK_UTILS.register_module()
class DetectronAnchorGenerator(AnchorGenerator):
    """Anchors as in Detectron; the arguments are those of `AnchorGenerator`.

    A box of the stride's size is turned into each ratio, its sides are rounded, and only then it is
    scaled. So the ratios differ by level, and no `ratios` and `scales` of MMDetection's generators
    give the same boxes: `AnchorGenerator` is up to 34 pixels off.
    """

    def gen_single_level_base_anchors(
        self,
        base_size: float,
        scales: Tensor,
        ratios: Tensor,
        center: tuple[float, float] | None = None,
    ) -> Tensor:
        """Return the anchors at one place of a level: (x1, y1, x2, y2), both ends held.

        Args:
            base_size: The stride.
            scales: The size of the anchors in strides, (S,).
            ratios: Height over width, (R,).
            center: Not used: a box of the stride's size lies in its cell.

        Returns:
            Shape (R·S, 4), the scale inner.
        """
        widths = (base_size**2 / ratios).sqrt().round()
        sides = torch.stack([widths, (widths * ratios).round()], 1)
        sides = (sides[:, None] * scales[:, None]).flatten(0, 1)
        middle = (base_size - 1) / 2
        reach = (sides - 1) / 2
        return torch.cat([middle - reach, middle + reach], 1)
