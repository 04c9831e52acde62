"""Backgrounds cut from the photographs in the wheels of scikit-image and scikit-learn.

The photographs are free to use: those of scikit-image are in the public domain or CC0; china.jpg
(by danielbuechele) and flower.jpg (by vultilion) of scikit-learn are CC BY 2.0. Photographs with
text, digits, coins or clocks are left out: they would show unlabelled characters.
"""

from importlib.resources import files

import cv2
import numpy as np

PHOTOGRAPHS = (
    ('skimage.data', 'brick.png'),
    ('skimage.data', 'camera.png'),
    ('skimage.data', 'chelsea.png'),
    ('skimage.data', 'coffee.png'),
    ('skimage.data', 'grass.png'),
    ('skimage.data', 'gravel.png'),
    ('skimage.data', 'hubble_deep_field.jpg'),
    ('skimage.data', 'ihc.png'),
    ('skimage.data', 'moon.png'),
    ('skimage.data', 'retina.jpg'),
    ('skimage.data', 'rocket.jpg'),
    ('sklearn.datasets.images', 'china.jpg'),
    ('sklearn.datasets.images', 'flower.jpg'),
)


def load_photographs() -> list[np.ndarray]:
    """Load the photographs, each (height, width, 3) uint8 RGB, at least 300 pixels a side.

    Raises:
        ImportError: scikit-image or scikit-learn is not installed.
        FileNotFoundError: The installed version does not bundle one of the photographs.
    """
    return [load_photograph(package, name) for package, name in PHOTOGRAPHS]


def load_photograph(package: str, name: str) -> np.ndarray:
    """Load a photograph that a package bundles, (height, width, 3) uint8 RGB.

    Raises:
        ImportError: The package is not installed.
        FileNotFoundError: The installed version does not bundle the photograph.
    """
    # The functions of skimage.data would download files that are missing from the wheel.
    encoded = np.frombuffer(files(package).joinpath(name).read_bytes(), np.uint8)
    return cv2.cvtColor(cv2.imdecode(encoded, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)


def random_background(
    rng: np.random.Generator, photographs: list[np.ndarray], width: int, height: int
) -> np.ndarray:
    """Cut a random background: crop, flip, then change contrast, tint and brightness.

    Args:
        rng: Source of all randomness.
        photographs: From ``load_photographs``.
        width: Width of the result in pixels.
        height: Height of the result in pixels.

    Returns:
        (height, width, 3) float32 RGB, from 0 to 255.
    """
    photograph = photographs[rng.integers(len(photographs))]
    crop = _random_crop(rng, photograph, width / height)
    image = cv2.resize(crop, (width, height), interpolation=cv2.INTER_AREA)
    if rng.random() < 0.5:
        image = image[:, ::-1]
    return _random_light(rng, image)


def _random_crop(rng: np.random.Generator, photograph: np.ndarray, aspect: float) -> np.ndarray:
    full_height, full_width = photograph.shape[:2]
    share = rng.uniform(0.5, 1.0)
    width = max(1, int(share * min(full_width, full_height * aspect)))
    height = max(1, int(share * min(full_height, full_width / aspect)))
    left = rng.integers(full_width - width + 1)
    top = rng.integers(full_height - height + 1)
    return photograph[top : top + height, left : left + width]


def _random_light(rng: np.random.Generator, image: np.ndarray) -> np.ndarray:
    image = image.astype(np.float32)
    mean = image.mean(axis=(0, 1))
    contrast = rng.uniform(0.5, 1.0)
    tint = rng.uniform(0.85, 1.15, size=3)
    brightness = rng.uniform(0.75, 1.25)
    light = (mean + contrast * (image - mean)) * tint * brightness
    return np.clip(light, 0, 255).astype(np.float32)
