"""The mosaic has flat tiles of few colours with dark lines between them."""

import numpy as np

from studies.demo.mosaic import mosaic


def test_the_mosaic() -> None:
    picture = mosaic()
    assert picture.shape == (192, 192, 3) and picture.dtype == np.uint8
    colors, counts = np.unique(picture.reshape(-1, 3), axis=0, return_counts=True)
    assert len(colors) == 8
    dark = counts[colors.sum(1).argmin()] / counts.sum()
    assert 0.2 < dark < 0.5
    # Neighbours are mostly of one tile.
    assert (picture[1:] == picture[:-1]).all(-1).mean() > 0.8


def test_a_seed_gives_one_mosaic() -> None:
    assert (mosaic(1) == mosaic(1)).all()
    assert (mosaic(1) != mosaic(2)).any()
