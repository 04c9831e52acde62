"""Copies of the tiny data sets in which one training image ends early, and their configs."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

# Of each toolbox: the fixture of its data and an image that is neither the first nor the last.
_DATA = {
    'detection': ('tiny_coco', 'images/train2.png'),
    'segmentation': ('tiny_maps', 'train/2.jpg'),
    'classification': ('tiny_classes', 'train/bright/2.png'),
}
TOOLBOXES = tuple(_DATA)


class Broken(NamedTuple):
    """A config, and the image of its training data that no decoder reads."""

    config: Path
    image: Path


def break_data(toolbox: str, request: pytest.FixtureRequest, folder: Path) -> Broken:
    """Copy the data and the config of a toolbox into a folder, and cut one image short."""
    fixture, name = _DATA[toolbox]
    whole = request.getfixturevalue(fixture)
    config = Path(request.getfixturevalue(f'{toolbox}_config'))
    data = folder / 'data'
    shutil.copytree(whole, data)
    cut_short(data / name)
    copied = folder / config.name
    copied.write_text(config.read_text().replace(str(whole), str(data)))
    return Broken(copied, data / name)


def cut_short(file: Path) -> None:
    """Leave only the start of a file."""
    file.write_bytes(file.read_bytes()[:100])
