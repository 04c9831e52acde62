"""Crops of single digits out of synthetic scenes, to train classifiers on."""

from collections.abc import Iterator

import cv2
import numpy as np

from studies.demo.backgrounds import load_photographs
from studies.demo.digits import load_digit_sets
from studies.demo.scene import Scene, compose_scene, tight_box

WIDTH, HEIGHT = 256, 192
# The side of a crop, relative to the larger side of its digit.
MIN_CONTEXT, MAX_CONTEXT = 1.2, 2.0


def digit_crops(split: str, scenes: int, side: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Cut every digit out of scenes that are not among the images of the demo data set.

    Args:
        split: the digits to draw from, ``'train'`` or ``'val'``.
        scenes: the number of scenes to compose.
        side: of a crop in pixels.
        seed: of all randomness.

    Returns:
        (N, side, side, 3) uint8 RGB images and their (N,) digits, 0 to 9.

    Raises:
        ImportError: scikit-image or scikit-learn is not installed.
        FileNotFoundError: The installed version does not bundle one of the photographs.
    """
    photographs, digits = load_photographs(), load_digit_sets()[split]
    images, labels = [], []
    for index in range(scenes):
        # The data set uses the streams 0 and 1.
        rng = np.random.default_rng([seed, {'train': 2, 'val': 3}[split], index])
        scene = compose_scene(rng, photographs, digits, WIDTH, HEIGHT)
        images.extend(cut_digits(rng, scene, side))
        labels.extend(scene.labels)
    return np.stack(images), np.array(labels)


def cut_digits(rng: np.random.Generator, scene: Scene, side: int) -> Iterator[np.ndarray]:
    """Cut each digit out of a scene, with a random part of its surroundings.

    Args:
        rng: Source of all randomness.
        scene: The scene.
        side: Of a crop in pixels.

    Yields:
        (side, side, 3) uint8 RGB, in the order of the labels of the scene.
    """
    full_height, full_width = scene.image.shape[:2]
    for mask in scene.masks:
        x, y, width, height = tight_box(mask)
        size = int(rng.uniform(MIN_CONTEXT, MAX_CONTEXT) * max(width, height))
        size = min(size, full_height, full_width)
        left = np.clip(x + (width - size) // 2, 0, full_width - size)
        top = np.clip(y + (height - size) // 2, 0, full_height - size)
        crop = scene.image[top : top + size, left : left + size]
        yield cv2.resize(crop, (side, side), interpolation=cv2.INTER_AREA)
