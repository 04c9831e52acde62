"""Mistakes in label maps and in folders of classes."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image

from studies.mistakes.case import Case, Scene, with_values
from studies.mistakes.data import HEIGHT, WIDTH

_MAP = 'labels/train/2.png'
_META = 'train_dataloader.dataset.metainfo'
_PALETTE = f'{_META}.palette'


def label_cases() -> list[Case]:
    """Return all of them."""
    return [*_maps(), *_sets_of_maps(), *_folders()]


def _maps() -> list[Case]:
    return [
        _map('a label map is missing', Path.unlink),
        _map('a label map is empty', lambda file: file.write_bytes(b'')),
        _map('a label map is text', lambda file: file.write_text('no map')),
        _map('a label map ends early', lambda f: f.write_bytes(f.read_bytes()[:50])),
        _map('a label map has the class 2 of two', lambda file: _write(file, 2)),
        _map('the first label map has the class 2 of two', lambda file: _write(file, 2), '0'),
        _map('a label map has the value 200', lambda file: _write(file, 200)),
        _map(
            'a label map is empty of labels (255)', lambda file: _write(file, 255, everywhere=True)
        ),
        _map('a label map has another size', lambda file: _write(file, 1, size=(10, 10))),
        _map('a label map is in colours', _in_colours),
        _map('a label map has a palette', _with_palette),
        _map('a label map has 16 bits', lambda file: _write(file, 1, dtype=np.uint16)),
        _map(
            'a label map has 16 bits and the value 300', lambda f: _write(f, 300, dtype=np.uint16)
        ),
        _map('a label map is a JPEG', _as_jpeg),
        _all_maps('all label maps are empty of labels (255)', 255),
        _all_maps('all label maps have one class', 0),
        Case('map', 'validation: a label map has the class 2', _spoil_validation),
    ]


def _sets_of_maps() -> list[Case]:
    def setting(change: str, values: dict[str, Any]) -> Case:
        return Case('map', change, with_values(values))

    dataset = 'train_dataloader.dataset'
    return [
        setting('the palette has one colour for two classes', {_PALETTE: [[0, 0, 0]]}),
        setting('the palette has a colour of two numbers', {_PALETTE: [[0, 0], [9, 9]]}),
        setting('the palette has the value 300', {_PALETTE: [[0, 0, 300], [9, 9, 9]]}),
        setting('the palette is text', {_PALETTE: 'colours'}),
        setting('the two colours of the palette are equal', {_PALETTE: [[9, 9, 9], [9, 9, 9]]}),
        setting('one name for two classes', {f'{_META}.classes': ('bright',)}),
        setting('three names for two classes', {f'{_META}.classes': ('a', 'b', 'c')}),
        setting('the classes are text', {f'{_META}.classes': 'bright'}),
        setting('`reduce_zero_label` by mistake', {f'{dataset}.reduce_zero_label': True}),
        setting('images end in `.png` in the config', {f'{dataset}.img_suffix': '.png'}),
        setting('label maps end in `.jpg` in the config', {f'{dataset}.seg_map_suffix': '.jpg'}),
        setting(
            'a folder of images that is not there', {f'{dataset}.data_prefix.img_path': 'imgs'}
        ),
        setting('a root that is not there', {f'{dataset}.data_root': 'nowhere'}),
        setting('the root is a file', {f'{dataset}.data_root': 'config.py'}),
        Case('map', 'a list of images names one that is not there', _list_with_stranger),
        Case('map', 'the list of images is empty', _empty_list),
        Case('map', 'the folder of images is empty', _empty_folder),
        Case('map', 'a label map without image', _spare_map),
    ]


def _folders() -> list[Case]:
    def folder(change: str, spoil: Callable[[Path], Any]) -> Case:
        return Case('class', change, lambda s: spoil(s.data / 'classes/train') and None)

    return [
        folder(
            'a class without images', lambda f: shutil.rmtree(f / 'dark') or (f / 'dark').mkdir()
        ),
        folder('one of two classes is missing', lambda f: shutil.rmtree(f / 'dark')),
        folder('a third class', lambda f: shutil.copytree(f / 'dark', f / 'grey')),
        folder('a third class without images', lambda f: (f / 'grey').mkdir()),
        folder('images without folders of classes', _flatten),
        folder('no images', lambda f: [file.unlink() for file in f.rglob('*.jpg')]),
        folder('the folder is missing', shutil.rmtree),
        folder(
            'a file that is no image',
            lambda f: (f / 'dark/notes.txt').write_text('x'),
        ),
        folder('one image', _one_image),
        Case('class', 'other classes to validate on', _other_validation),
    ]


def _map(change: str, spoil: Callable[[Path], Any], number: str = '2') -> Case:
    return Case('map', change, lambda s: spoil(s.data / f'labels/train/{number}.png') and None)


def _all_maps(change: str, value: int) -> Case:
    def spoil(scene: Scene) -> None:
        for file in (scene.data / 'labels/train').iterdir():
            _write(file, value, everywhere=True)

    return Case('map', change, spoil)


def _write(
    file: Path,
    value: int,
    everywhere: bool = False,
    size: tuple[int, int] = (HEIGHT, WIDTH),
    dtype: type = np.uint8,
) -> None:
    labels = np.zeros(size, dtype)
    labels[slice(None) if everywhere else slice(5)] = value
    cv2.imwrite(str(file), labels)


def _in_colours(file: Path) -> None:
    labels = cv2.imread(str(file), cv2.IMREAD_GRAYSCALE)
    cv2.imwrite(str(file), np.stack([labels * 255, labels * 0, labels * 128], axis=-1))


def _with_palette(file: Path) -> None:
    labels = Image.fromarray(cv2.imread(str(file), cv2.IMREAD_GRAYSCALE)).convert('P')
    labels.putpalette([9, 9, 9, 200, 50, 50])
    labels.save(file)


def _as_jpeg(file: Path) -> None:
    labels = cv2.imread(str(file), cv2.IMREAD_GRAYSCALE)
    noisy = cv2.imencode('.jpg', labels * 30, [cv2.IMWRITE_JPEG_QUALITY, 50])[1]
    file.write_bytes(noisy.tobytes())


def _spoil_validation(scene: Scene) -> None:
    _write(scene.data / 'labels/val/0.png', 2)


def _list_with_stranger(scene: Scene) -> None:
    (scene.data / 'train.txt').write_text('0\n1\nstranger\n')
    scene.set('train_dataloader.dataset.ann_file', 'train.txt')


def _empty_list(scene: Scene) -> None:
    (scene.data / 'train.txt').write_text('')
    scene.set('train_dataloader.dataset.ann_file', 'train.txt')


def _empty_folder(scene: Scene) -> None:
    shutil.rmtree(scene.data / 'images/train')
    (scene.data / 'images/train').mkdir()


def _spare_map(scene: Scene) -> None:
    shutil.copy(scene.data / _MAP, scene.data / 'labels/train/spare.png')


def _flatten(folder: Path) -> None:
    for file in list(folder.rglob('*.jpg')):
        file.rename(folder / file.name)
    for place in list(folder.iterdir()):
        if place.is_dir():
            place.rmdir()


def _one_image(folder: Path) -> None:
    for file in sorted(folder.rglob('*.jpg'))[1:]:
        file.unlink()


def _other_validation(scene: Scene) -> None:
    (scene.data / 'classes/val/dark').rename(scene.data / 'classes/val/grey')
