"""Mistakes and oddities in images."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image

from studies.mistakes.case import Case, Scene
from studies.mistakes.configs import TASKS
from studies.mistakes.data import HEIGHT, WIDTH

_ONE_OF_EACH = ('box', 'map', 'class')


def image_path(task: str, split: str = 'train') -> str:
    """Return an image of a task's data, relative to the folder of the data."""
    number = dict(train=2, val=0)[split]
    return (
        f'classes/{split}/bright/{number}.jpg'
        if task == 'class'
        else f'images/{split}/{number}.jpg'
    )


def image_cases() -> list[Case]:
    """Return all of them."""
    return [
        *_image('an image is missing', Path.unlink, TASKS),
        *_image('an image is empty', lambda file: file.write_bytes(b''), TASKS),
        *_image('an image is text', lambda file: file.write_text('no image'), TASKS),
        *_image('an image is a folder', lambda file: (file.unlink(), file.mkdir()), ('box', 'map')),
        *_image('nobody may read an image', lambda file: file.chmod(0), ('box', 'class')),
        *_image('an image is a link to nothing', _link_to_nothing, ('map',)),
        *_image('a JPEG ends in its header', lambda file: _cut(file, 100), TASKS),
        *_image('a JPEG ends early', lambda file: _cut(file, file.stat().st_size // 2), TASKS),
        *_image('a PNG ends early', _short_png, _ONE_OF_EACH),
        *_image('a PNG claims 60000 × 60000 pixels', _bomb, _ONE_OF_EACH),
        *_image('an image has 3000 × 2000 pixels', lambda file: _resized(file, 3000, 2000), TASKS),
        *_image('an image has 1 × 1 pixel', lambda file: _resized(file, 1, 1), TASKS),
        *_image('an image has 500 × 1 pixels', lambda file: _resized(file, 500, 1), _ONE_OF_EACH),
        *_image('an image is grey', lambda file: _as(file, 'L'), TASKS),
        *_image('an image has a palette', lambda file: _as(file, 'P', 'PNG'), _ONE_OF_EACH),
        *_image('an image has one bit', lambda file: _as(file, '1', 'PNG'), ('box',)),
        *_image('an image has 16 bits', _sixteen_bits, TASKS),
        *_image('an image is RGBA', lambda file: _as(file, 'RGBA', 'PNG'), TASKS),
        *_image('an image is CMYK', lambda file: _as(file, 'CMYK'), _ONE_OF_EACH),
        *_image('an image is a GIF', lambda file: _as(file, 'P', 'GIF'), ('box',)),
        *_image('an image is in numbers with fractions', _floats, ('map',)),
        *_image('an image lies on its side (EXIF)', _rotated, ('box', 'map')),
        *_workers('an image is text, read by a worker', lambda file: file.write_text('no image')),
        *_image(
            'an image for validation is text', lambda f: f.write_text('no image'), TASKS, 'val'
        ),
        *_skipped(),
    ]


def _image(
    change: str, spoil: Callable[[Path], Any], tasks: tuple[str, ...], split: str = 'train'
) -> list[Case]:
    def of(task: str) -> Callable[[Scene], None]:
        return lambda scene: spoil(scene.data / image_path(task, split)) and None

    return [Case(task, change, of(task)) for task in tasks]


def _workers(change: str, spoil: Callable[[Path], Any]) -> list[Case]:
    def with_worker(scene: Scene) -> None:
        scene.set('train_dataloader.num_workers', 1)
        spoil(scene.data / image_path('box'))

    return [Case('box', change, with_worker)]


def _skipped() -> list[Case]:
    def of(task: str) -> Callable[[Scene], None]:
        def spoil(scene: Scene) -> None:
            scene.arguments += ['--bad-images', 'skip']
            (scene.data / image_path(task)).write_text('no image')

        return spoil

    return [Case(task, 'an image is text: `--bad-images skip`', of(task)) for task in _ONE_OF_EACH]


def _cut(file: Path, size: int) -> None:
    file.write_bytes(file.read_bytes()[:size])


def _link_to_nothing(file: Path) -> None:
    file.unlink()
    file.symlink_to('nothing.jpg')


def _short_png(file: Path) -> None:
    _as(file, 'RGB', 'PNG')
    _cut(file, file.stat().st_size // 2)


def _bomb(file: Path) -> None:
    """Change the size in the header of a PNG, with its checksum."""
    import zlib

    _as(file, 'RGB', 'PNG')
    content = bytearray(file.read_bytes())
    content[16:24] = (60000).to_bytes(4, 'big') * 2
    content[29:33] = zlib.crc32(content[12:29]).to_bytes(4, 'big')
    file.write_bytes(content)


def _resized(file: Path, width: int, height: int) -> None:
    cv2.imwrite(str(file), cv2.resize(cv2.imread(str(file)), (width, height)))


def _as(file: Path, mode: str, kind: str = 'JPEG') -> None:
    with Image.open(file) as image:
        converted = image.convert(mode)
    converted.save(file, kind)


def _sixteen_bits(file: Path) -> None:
    image = cv2.imread(str(file)).astype(np.uint16) * 256
    file.write_bytes(cv2.imencode('.png', image)[1].tobytes())


def _floats(file: Path) -> None:
    image = np.random.default_rng(0).random((HEIGHT, WIDTH, 3), dtype=np.float32)
    file.write_bytes(cv2.imencode('.tiff', image)[1].tobytes())


def _rotated(file: Path) -> None:
    with Image.open(file) as image:
        exif = image.getexif()
        exif[0x0112] = 6
        image.load()
    image.save(file, 'JPEG', exif=exif)
