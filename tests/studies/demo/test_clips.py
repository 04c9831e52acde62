"""A digit moves over a background that stays, and no frame tells where it moves."""

from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip('sklearn')
pytest.importorskip('skimage')
from studies.demo import clips
from studies.demo.clips import DIRECTIONS, SPEED, moving_digits


def test_clips_are_of_every_class_and_repeat_themselves() -> None:
    images, directions, digits = moving_digits('train', 40, 3)
    assert (images.shape, images.dtype) == ((40, 3, 32, 32, 3), np.uint8)
    assert set(directions) == set(range(len(DIRECTIONS)))
    assert len(set(digits)) > 5
    again, *_ = moving_digits('train', 2, 3)
    assert np.array_equal(again, images[:2])
    for other in (moving_digits('train', 1, 3, seed=1), moving_digits('val', 1, 3)):
        assert not np.array_equal(other[0][0], images[0])


def test_the_digit_moves_as_its_direction_says(monkeypatch: pytest.MonkeyPatch) -> None:
    flat = np.full((32, 32, 3), 100, np.float32)
    monkeypatch.setattr(clips, 'random_background', lambda *_: flat.copy())
    images, directions, _ = moving_digits('train', 20, 4)
    for clip, direction in zip(images, directions, strict=True):
        assert (clip != 100).any()
        right, down = list(DIRECTIONS.values())[direction]
        for before, after in pairwise(clip):
            moved = np.roll(before, (SPEED * down, SPEED * right), axis=(0, 1))
            assert np.array_equal(after, moved)


def test_places_in_a_frame_do_not_depend_on_the_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    flat = np.full((16, 16, 3), 100, np.float32)
    monkeypatch.setattr(clips, 'random_background', lambda *_: flat.copy())
    images, directions, _ = moving_digits('train', 400, 2, side=16)
    ink = (images[:, 1] != 100).any(-1)
    shares = [ink[directions == direction].mean(0) for direction in range(len(DIRECTIONS))]
    # Each pixel holds ink as often, up to chance: the deviation of a share over 100 clips is 0.05.
    assert max(np.abs(share - ink.mean()).max() for share in shares) < 5 * 0.05
