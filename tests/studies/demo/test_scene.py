"""Scenes hold clearly visible, little covered digits of varied size."""

import numpy as np
import pytest
from scipy.ndimage import binary_dilation

from studies.demo.backgrounds import load_photographs
from studies.demo.digits import load_digit_sets
from studies.demo.scene import compose_scene, tight_box


@pytest.fixture(scope='module')
def compose():
    photographs, digits = load_photographs(), load_digit_sets()['train']

    def at_seed(seed, width=256, height=192):
        return compose_scene(np.random.default_rng(seed), photographs, digits, width, height)

    return at_seed


@pytest.fixture(scope='module')
def scenes(compose):
    return [compose(seed) for seed in range(40)]


def test_the_same_seed_gives_the_same_scene(compose):
    first, again, other = compose(5), compose(5), compose(6)
    np.testing.assert_array_equal(first.image, again.image)
    np.testing.assert_array_equal(first.masks, again.masks)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert not np.array_equal(first.image, other.image)


def test_shapes_and_counts(scenes):
    counts = [len(scene.labels) for scene in scenes]
    assert set(counts) == {3, 4, 5, 6, 7}
    for scene in scenes:
        assert scene.image.shape == (192, 256, 3)
        assert scene.image.dtype == np.uint8
        assert scene.masks.shape == (len(scene.labels), 192, 256)
        assert scene.labels.min() >= 0
        assert scene.labels.max() <= 9


def test_no_pixel_belongs_to_two_digits(scenes):
    assert all(scene.masks.sum(axis=0).max() == 1 for scene in scenes)


def test_some_digits_touch_or_overlap_others(scenes):
    touching = 0
    for scene in scenes:
        rest = scene.masks.sum(axis=0)
        touching += sum(
            bool((binary_dilation(mask) & (rest - mask > 0)).any()) for mask in scene.masks
        )
    assert 0.05 < touching / sum(len(scene.labels) for scene in scenes) < 0.6


def test_sizes_spread_over_the_promised_range(scenes):
    heights = [np.ptp(np.nonzero(mask)[0]) + 1 for scene in scenes for mask in scene.masks]
    assert 12 <= min(heights) < 30
    assert 65 < max(heights) <= 100
    assert 35 < np.median(heights) < 55


def test_ink_differs_clearly_from_its_surroundings(scenes):
    contrasts = []
    for scene in scenes:
        grey = scene.image.mean(axis=2)
        for mask in scene.masks:
            around = binary_dilation(mask, iterations=4) & ~binary_dilation(mask)
            contrasts.append(grey[mask].mean() - grey[around].mean())
    contrasts = np.array(contrasts)
    assert np.mean(np.abs(contrasts) > 25) > 0.9
    assert np.median(np.abs(contrasts)) > 50
    assert 0.25 < np.mean(contrasts > 0) < 0.75


def test_the_smallest_image_holds_a_digit(compose):
    for seed in range(20):
        assert len(compose(seed, 128, 128).labels) >= 1


def test_tight_box_counts_whole_pixels():
    mask = np.zeros((10, 12), bool)
    mask[2:5, 3:9] = True
    assert tight_box(mask) == (3, 2, 6, 3)
