"""Crops of single digits hold their digit whole, and are the same for the same seed."""

import numpy as np
import pytest

from studies.demo import crops
from studies.demo.scene import Scene


def test_crops_are_of_every_digit_and_repeat_themselves() -> None:
    images, labels = crops.digit_crops('train', 12, 32)
    assert images.shape == (len(labels), 32, 32, 3)
    assert images.dtype == np.uint8
    assert 12 * 3 <= len(labels) <= 12 * 7
    assert set(labels) == set(range(10))
    again, _ = crops.digit_crops('train', 12, 32)
    assert np.array_equal(images, again)
    for other in (crops.digit_crops('train', 1, 32, seed=1), crops.digit_crops('val', 1, 32)):
        assert not np.array_equal(other[0][0], images[0])


@pytest.mark.parametrize(('x', 'y'), [(0, 0), (256 - 40, 192 - 60), (100, 70), (0, 192 - 60)])
def test_crop_holds_its_digit_whole(x: int, y: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mask = np.zeros((192, 256), bool)
    mask[y : y + 60, x : x + 40] = True
    image = np.where(mask[..., None], 255, 0).astype(np.uint8).repeat(3, 2)
    scene = Scene(image, np.array([7]), mask[None])
    monkeypatch.setattr(crops, 'compose_scene', lambda *_: scene)
    for seed in range(5):
        images, labels = crops.digit_crops('val', 1, 64, seed)
        assert labels.tolist() == [7]
        # The digit is 2/3 as wide as tall, and the crop 1.2 to 2 times as tall.
        share = images.mean() / 255
        assert 2 / 3 / 2**2 * 0.9 < share < 2 / 3 / 1.2**2 * 1.1
