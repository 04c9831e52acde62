"""The images to predict on: found, and known to be readable before a model is built."""

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
from rich.progress import track

from sn_openmmlab.checkpoints.names import few
from sn_openmmlab.errors import UsageError

# As the toolboxes choose the images of a folder.
_SUFFIXES = ('.jpg', '.jpeg', '.png', '.ppm', '.bmp', '.pgm', '.tif', '.tiff', '.webp')
# The first is fast for a JPEG, but decodes nothing that is one pixel wide.
_MODES = (cv2.IMREAD_REDUCED_GRAYSCALE_8, cv2.IMREAD_COLOR)


def find_images(inputs: Iterable[str | Path]) -> list[Path]:
    """Return the images that are named or lie directly in a named folder, each once.

    Of a folder, hidden files and those without the suffix of an image are skipped, and what is
    skipped is printed. A file that is named itself may have any suffix.

    Raises:
        UsageError: a file or folder does not exist, or a folder has no image.
    """
    found: dict[str, Path] = {}
    for path in map(Path, inputs):
        for image in _images_in(path) if path.is_dir() else [path]:
            if not image.is_file():
                raise UsageError(f'there is no image or folder {path}.')
            found.setdefault(os.path.realpath(image), image)
    return list(found.values())


def _images_in(folder: Path) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise UsageError(f'{folder} cannot be read: {error.strerror}.') from error
    seen = [entry for entry in entries if not entry.name.startswith('.')]
    files = [entry for entry in seen if entry.is_file()]
    images = [file for file in files if file.suffix.lower() in _SUFFIXES]
    if not images:
        advice = 'its folders are not searched, name them' if len(files) < len(seen) else 'name one'
        raise UsageError(f'{folder} has no images ({", ".join(_SUFFIXES)}): {advice}.')
    others = [file.name for file in files if file.suffix.lower() not in _SUFFIXES]
    if others:
        print(f'Skipped what is no image by its name in {folder}: {few(others)}.')
    return images


def check_images(images: Sequence[Path]) -> None:
    """Raise UsageError if a file is no image, or is broken or cut short.

    Each one is decoded as a whole, by the reader of the toolboxes, since a broken one would end a
    long run in its middle.
    """
    with ThreadPoolExecutor() as pool:
        faults = pool.map(_fault, images)
        shown = track(faults, 'Checking', total=len(images), transient=True)
        broken = [(image, fault) for image, fault in zip(images, shown, strict=True) if fault]
    if broken:
        image, fault = broken[0]
        others = few(other.name for other, _ in broken[1:])
        also = f' Also not readable: {others}.' if others else ''
        raise UsageError(f'{image} {fault}.{also}')


def _fault(image: Path) -> str | None:
    """Return what is wrong with a file, or None."""
    try:
        content = np.fromfile(image, np.uint8)
    except OSError as error:
        return f'cannot be read: {error.strerror}'
    if not content.size:
        return 'is empty: replace it or leave it out'
    if not cv2.haveImageReader(str(image)):
        return 'is no image that OpenCV reads: convert it to PNG or JPEG, or leave it out'
    if not any(_decodes(content, mode) for mode in _MODES):
        return 'is broken, cut short or too large for OpenCV: replace it or leave it out'
    return None


def _decodes(content: np.ndarray, mode: int) -> bool:
    try:
        return cv2.imdecode(content, mode) is not None
    except cv2.error:
        return False
