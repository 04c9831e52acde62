"""Share images of many kinds, and models with untrained weights in a file."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine.config import Config
from PIL import Image

from sn_openmmlab.runs.config import read_config

HEIGHT, WIDTH = 40, 60


@pytest.fixture(scope='session')
def pixels() -> np.ndarray:
    """Return an RGB image of noise, 60 wide and 40 high."""
    return np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)


@pytest.fixture(scope='session')
def odd_images(pixels: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write images of every kind that a user may have into a folder."""
    folder = tmp_path_factory.mktemp('odd')
    rgb = Image.fromarray(pixels)
    for mode in ('L', 'P', '1', 'LA', 'RGBA'):
        rgb.convert(mode).save(folder / f'mode {mode}.png')
    rgb.convert('CMYK').save(folder / 'mode CMYK.jpg')
    Image.fromarray(pixels[..., 0].astype(np.uint16) * 256).save(folder / 'sixteen_bits.png')
    Image.fromarray(pixels[:1, :1]).save(folder / 'one_pixel.png')
    Image.fromarray(pixels[:1]).save(folder / 'one_row.png')
    Image.fromarray(pixels[:, :1]).save(folder / 'one_column.png')
    rgb.save(folder / 'Straße und 道路.JPG', 'JPEG')
    turned = Image.Exif()
    # The camera was held upright.
    turned[0x0112] = 6
    rgb.save(folder / 'turned.jpg', exif=turned)
    for suffix in ('bmp', 'ppm', 'tif', 'webp'):
        rgb.save(folder / f'format_{suffix}.{suffix}')
    return folder


@pytest.fixture(scope='session')
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Config, str]]:
    """Return a function (config file, **meta) -> config, and a checkpoint with random weights."""
    from mmengine.registry import MODELS, DefaultScope

    def save(file: Path, norm: str | None = None, **meta: object) -> tuple[Config, str]:
        config = read_config(file, norm=norm)
        torch.manual_seed(0)
        with DefaultScope.overwrite_default_scope(config.default_scope):
            model = MODELS.build(config.copy().model)
        checkpoint = tmp_path_factory.mktemp('untrained') / 'weights.pth'
        torch.save({'state_dict': model.state_dict(), 'meta': meta}, checkpoint)
        return config, str(checkpoint)

    return save
