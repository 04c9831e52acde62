"""Composition of one image: digits laid over a background, each later one on top."""

from dataclasses import dataclass

import cv2
import numpy as np

from studies.demo.backgrounds import random_background
from studies.demo.digits import DigitSet

MIN_DIGITS, MAX_DIGITS = 3, 7
MIN_TALL, MAX_TALL = 24, 80
MAX_ANGLE = 25
MIN_SIDE = 128

_MIN_VISIBLE = 0.7
_MAX_BOX_OVERLAP = 0.4
_TRIES = 40
_LUMA = np.array([0.299, 0.587, 0.114])


@dataclass(frozen=True)
class Scene:
    """One image and its annotations.

    Attributes:
        image: (height, width, 3) uint8 RGB.
        labels: Digit of each instance, 0 to 9, shape (N,), int; N is at least 1.
        masks: Visible part of each instance, (N, height, width) bool; no pixel is in two masks.
    """

    image: np.ndarray
    labels: np.ndarray
    masks: np.ndarray


def compose_scene(
    rng: np.random.Generator,
    photographs: list[np.ndarray],
    digits: DigitSet,
    width: int,
    height: int,
) -> Scene:
    """Lay 3 to 7 digits over a background, with every digit at least 70 % visible.

    A digit for which no such place is found is left out, so a small image may hold fewer.

    Args:
        rng: Source of all randomness: the same state gives the same scene.
        photographs: (height, width, 3) uint8 RGB images, from ``load_photographs``.
        digits: The digits to draw from; none is drawn twice.
        width: Width in pixels, at least ``MIN_SIDE``, so that the tallest digit fits.
        height: Height in pixels, at least ``MIN_SIDE``.
    """
    canvas = random_background(rng, photographs, width, height)
    count = rng.integers(MIN_DIGITS, MAX_DIGITS + 1)
    labels: list[int] = []
    full_masks: list[np.ndarray] = []
    for row in rng.choice(len(digits.labels), size=count, replace=False):
        alpha = _place(rng, digits.images[row], full_masks, canvas.shape[:2])
        if alpha is None:
            continue
        _paint(rng, canvas, alpha)
        labels.append(int(digits.labels[row]))
        full_masks.append(alpha >= 0.5)
    image = np.clip(np.rint(canvas), 0, 255).astype(np.uint8)
    return Scene(image, np.array(labels), np.stack(_visible(full_masks)))


def tight_box(mask: np.ndarray) -> tuple[int, int, int, int]:
    """Return the box (x, y, width, height) around the True pixels of a (height, width) mask."""
    columns = np.flatnonzero(mask.any(axis=0))
    rows = np.flatnonzero(mask.any(axis=1))
    x, y = int(columns[0]), int(rows[0])
    return x, y, int(columns[-1]) - x + 1, int(rows[-1]) - y + 1


def _place(
    rng: np.random.Generator,
    digit: np.ndarray,
    full_masks: list[np.ndarray],
    shape: tuple[int, int],
) -> np.ndarray | None:
    for _ in range(_TRIES):
        glyph = random_glyph(rng, digit)
        top = rng.integers(shape[0] - glyph.shape[0] + 1)
        left = rng.integers(shape[1] - glyph.shape[1] + 1)
        alpha = np.zeros(shape, np.float32)
        alpha[top : top + glyph.shape[0], left : left + glyph.shape[1]] = glyph
        if _is_free(alpha >= 0.5, full_masks):
            return alpha
    return None


def random_glyph(
    rng: np.random.Generator, digit: np.ndarray, lowest: int = MIN_TALL, tallest: int = MAX_TALL
) -> np.ndarray:
    """Enlarge and rotate an (8, 8) digit; return alpha from 0 to 1, cropped to the ink.

    Before it is rotated and cropped, it is between `lowest` and `tallest` pixels tall.
    """
    tall = np.exp(rng.uniform(np.log(lowest), np.log(tallest)))
    angle = rng.uniform(-MAX_ANGLE, MAX_ANGLE)
    side = int(np.ceil(1.5 * tall))
    padded = np.pad(digit, 2)
    middle = (padded.shape[0] - 1) / 2
    matrix = cv2.getRotationMatrix2D((middle, middle), angle, tall / digit.shape[0])
    matrix[:, 2] += (side - 1) / 2 - middle
    smooth = cv2.warpAffine(padded, matrix, (side, side), flags=cv2.INTER_CUBIC)
    # Enlarging blurs the strokes over several pixels; this gives them a soft edge again.
    alpha = np.clip((smooth - 0.32) / 0.3, 0, 1)
    x, y, width, height = tight_box(alpha > 0)
    return alpha[y : y + height, x : x + width]


def _is_free(mask: np.ndarray, full_masks: list[np.ndarray]) -> bool:
    box = tight_box(mask)
    if any(_box_overlap(box, tight_box(other)) > _MAX_BOX_OVERLAP for other in full_masks):
        return False
    visible = _visible([*full_masks, mask])
    return all(
        part.sum() >= _MIN_VISIBLE * full.sum()
        for part, full in zip(visible, full_masks, strict=False)
    )


def _box_overlap(first: tuple[int, int, int, int], second: tuple[int, int, int, int]) -> float:
    """Return the common area of two boxes relative to the smaller one."""
    wide = min(first[0] + first[2], second[0] + second[2]) - max(first[0], second[0])
    tall = min(first[1] + first[3], second[1] + second[3]) - max(first[1], second[1])
    return max(wide, 0) * max(tall, 0) / min(first[2] * first[3], second[2] * second[3])


def _visible(full_masks: list[np.ndarray]) -> list[np.ndarray]:
    visible = []
    covered = np.zeros_like(full_masks[0])
    for mask in reversed(full_masks):
        visible.append(mask & ~covered)
        covered |= mask
    return visible[::-1]


def _paint(rng: np.random.Generator, canvas: np.ndarray, alpha: np.ndarray) -> None:
    x, y, width, height = tight_box(alpha > 0)
    region = canvas[y : y + height, x : x + width]
    ink = random_ink(rng, region)
    opacity = rng.uniform(0.85, 1.0)
    blend = opacity * alpha[y : y + height, x : x + width, None]
    region *= 1 - blend
    region += blend * ink


def random_ink(rng: np.random.Generator, region: np.ndarray) -> np.ndarray:
    """Return an RGB colour clearly lighter or darker than a (height, width, 3) background."""
    luma = float(region.mean(axis=(0, 1)) @ _LUMA)
    step = rng.uniform(80, 150)
    lighter = rng.random() < np.interp(luma, [90, 165], [1, 0])
    chroma = rng.normal(0, 40, size=3)
    chroma -= chroma @ _LUMA
    return np.clip(luma + (step if lighter else -step) + chroma, 0, 255)
