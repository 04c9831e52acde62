"""A picture whose style can be learned: a mosaic of coloured tiles, drawn by this file."""

import numpy as np

SIDE = 192
_TILES, _GROUT = 90, 3
_COLORS = (
    (200, 30, 40),
    (240, 180, 20),
    (20, 60, 160),
    (30, 130, 110),
    (245, 235, 215),
    (230, 100, 30),
    (90, 30, 110),
)
_DARK = (20, 20, 25)


def mosaic(seed: int = 0) -> np.ndarray:
    """Return a mosaic, (192, 192, 3) uint8 RGB: a tile around each of 90 random points."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, SIDE, (_TILES, 2))
    y, x = np.mgrid[:SIDE, :SIDE]
    distances = np.hypot(x[..., None] - points[:, 0], y[..., None] - points[:, 1])
    nearest = np.sort(distances, -1)
    picture = np.array(_COLORS)[rng.integers(len(_COLORS), size=_TILES)][distances.argmin(-1)]
    picture[nearest[..., 1] - nearest[..., 0] < _GROUT] = _DARK
    return picture.astype(np.uint8)
