"""Short clips of a digit that moves over a photograph: one frame does not tell where it moves."""

import numpy as np

from studies.demo.backgrounds import load_photographs, random_background
from studies.demo.digits import load_digit_sets
from studies.demo.scene import random_glyph, random_ink

# Columns and rows that a digit moves by, per step.
DIRECTIONS = {'right': (1, 0), 'down': (0, 1), 'left': (-1, 0), 'up': (0, -1)}
SPEED = 2


def moving_digits(
    split: str, clips: int, frames: int, side: int = 32, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compose clips of one digit each, which moves over a photograph that stays.

    It moves by `SPEED` pixels a frame, from a random place, and returns at the opposite side when
    it leaves. So in each frame it is anywhere, whatever its direction.

    Args:
        split: the digits to draw from, ``'train'`` or ``'val'``.
        clips: their number, N.
        frames: of each clip, T.
        side: of a frame in pixels, at least 16.
        seed: of all randomness.

    Returns:
        (N, T, side, side, 3) uint8 RGB; (N,) directions, as indices into `DIRECTIONS`; and the (N,)
            digits, 0 to 9.

    Raises:
        ImportError: scikit-image or scikit-learn is not installed.
        FileNotFoundError: The installed version does not bundle one of the photographs.
    """
    photographs, digits = load_photographs(), load_digit_sets()[split]
    images = np.empty((clips, frames, side, side, 3), np.uint8)
    directions, rows = np.empty(clips, np.int64), np.empty(clips, np.int64)
    for i in range(clips):
        # The data set uses the streams 0 and 1, the crops 2 and 3.
        rng = np.random.default_rng([seed, {'train': 4, 'val': 5}[split], i])
        directions[i] = rng.integers(len(DIRECTIONS))
        rows[i] = rng.integers(len(digits.labels))
        background = random_background(rng, photographs, side, side)
        images[i] = _move(rng, background, digits.images[rows[i]], directions[i], frames)
    return images, directions, digits.labels[rows]


def _move(
    rng: np.random.Generator,
    background: np.ndarray,
    digit: np.ndarray,
    direction: int,
    frames: int,
) -> np.ndarray:
    side = len(background)
    glyph = random_glyph(rng, digit, 3 * side // 8, side // 2)
    alpha = np.zeros((side, side, 1), np.float32)
    alpha[: glyph.shape[0], : glyph.shape[1], 0] = glyph
    left, top = rng.integers(side, size=2)
    right, down = list(DIRECTIONS.values())[direction]
    ink = random_ink(rng, background)
    shown = []
    for frame in range(frames):
        place = (top + frame * SPEED * down, left + frame * SPEED * right)
        blend = np.roll(alpha, place, axis=(0, 1))
        shown.append(background * (1 - blend) + ink * blend)
    return np.clip(np.rint(np.stack(shown)), 0, 255).astype(np.uint8)
