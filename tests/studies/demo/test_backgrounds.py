"""Backgrounds come from photographs inside the wheels, and vary."""

from importlib.metadata import files

import numpy as np
import pytest

from studies.demo.backgrounds import PHOTOGRAPHS, load_photographs, random_background


@pytest.fixture(scope='module')
def photographs():
    return load_photographs()


def test_every_photograph_is_listed_in_the_wheel():
    bundled = {str(file) for name in ('scikit-image', 'scikit-learn') for file in files(name)}
    wanted = {f'{package.replace(".", "/")}/{name}' for package, name in PHOTOGRAPHS}
    assert wanted <= bundled


def test_photographs_are_rgb_as_scikit_image_reads_them(photographs):
    from skimage.data import coffee

    names = [name for _, name in PHOTOGRAPHS]
    np.testing.assert_array_equal(photographs[names.index('coffee.png')], coffee())
    assert all(p.dtype == np.uint8 and p.shape[2] == 3 for p in photographs)
    assert min(min(p.shape[:2]) for p in photographs) >= 300


@pytest.mark.parametrize('size', [(256, 192), (128, 400), (700, 128)])
def test_background_has_the_requested_size(photographs, size):
    image = random_background(np.random.default_rng(1), photographs, *size)
    assert image.shape == (size[1], size[0], 3)
    assert image.dtype == np.float32
    assert 0 <= image.min() < image.max() <= 255


def test_backgrounds_differ_and_repeat_with_the_seed(photographs):
    first, second, again = (
        random_background(np.random.default_rng(seed), photographs, 160, 128) for seed in (1, 2, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - second).mean() > 10
