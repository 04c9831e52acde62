"""An image is resized by a factor."""

import cv2
import numpy as np
import pytest

pytest.importorskip('mmdet')
from sn_openmmlab.detectron.resize import DetectronResize


def resize(height: int, width: int, scale: tuple[int, int]) -> dict:
    """Return the results for an image in which each pixel holds its column."""
    image = np.tile(np.arange(width, dtype=np.float32)[:, None], (height, 1, 3))
    return DetectronResize(scale)(dict(img=image))


@pytest.mark.parametrize(
    ('size', 'factor', 'resized'),
    [
        # The short side gets its length.
        ((100, 150), 1.92, (192, 288)),
        # The long side would be 1334.
        ((300, 1000), 1.333, (400, 1333)),
        # The long side is 1333.33, which they take for 1333.
        ((480, 800), 800 / 480, (800, 1333)),
    ],
)
def test_factor_and_size(size: tuple, factor: float, resized: tuple[int, int]) -> None:
    scale = (1333, 800) if size[0] > 200 else (333, 192)
    made = resize(*size, scale)
    assert made['scale_factor'] == pytest.approx((factor, factor))
    assert made['img_shape'] == made['img'].shape[:2] == resized
    assert made['img'].dtype == np.float32


def test_samples_lie_at_steps_of_the_factor() -> None:
    """By size, the steps would be 150 / 256."""
    made = resize(100, 150, (256, 192))
    factor = 256 / 150
    assert made['img_shape'] == (171, 256)
    columns = (np.arange(256) + 0.5) / factor - 0.5
    assert np.allclose(made['img'][5, :, 0], columns.clip(0, 149), atol=1e-3)
    rows = np.tile(np.arange(100, dtype=np.float32)[:, None, None], (1, 150, 3))
    made = DetectronResize((256, 192))(dict(img=rows))
    expected = ((np.arange(171) + 0.5) / factor - 0.5).clip(0, 99)
    assert np.allclose(made['img'][:, 5, 1], expected, atol=1e-3)
    by_size = cv2.resize(rows, (256, 171))
    assert np.abs(by_size[:, 5, 1] - expected).max() > 0.1
