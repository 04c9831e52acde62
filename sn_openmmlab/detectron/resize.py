"""Resizing by a factor rather than to a size."""

import cv2
import numpy as np
from mmdet.datasets.transforms import Resize
from mmdet.registry import TRANSFORMS


@TRANSFORMS.register_module()
class DetectronResize(Resize):
    """`Resize` with `keep_ratio=True` that samples the image at steps of exactly 1 / factor.

    MMDetection's rounds the size first, and its steps are then the ratio of the two sizes. Both
    axes have the same factor here. To resize without rounding the pixels, load the image with
    `to_float32=True`.

    Args:
        scale: The long and the short side. The short side gets its length, unless the long one
            would be longer than its own.
    """

    def __init__(self, scale: tuple[int, int]) -> None:
        super().__init__(scale=scale, keep_ratio=True)

    def _resize_img(self, results: dict) -> None:
        image = results['img']
        short, long = sorted(image.shape[:2])
        factor = min(results['scale']) / short
        if np.round(factor * long) > max(results['scale']):
            factor = max(results['scale']) / long
        image = cv2.resize(image, None, fx=factor, fy=factor, interpolation=cv2.INTER_LINEAR)
        results['img'] = image
        results['img_shape'] = image.shape[:2]
        results['scale_factor'] = (factor, factor)
        results['keep_ratio'] = True
