"""The files of the predictions: their names, and writing each one whole or not at all."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from sn_openmmlab.checkpoints.files.writing import write_file
from sn_openmmlab.errors import UsageError
from sn_openmmlab.prediction.prediction import Prediction

_PICTURES = 'vis'
_RECORDS = 'preds'


def output_names(images: Sequence[Path]) -> list[str]:
    """Return for each image the name of its files: its own, with a number if that is taken."""
    taken: set[str] = set()
    names = []
    for image in images:
        name, number = image.stem, 1
        # Some file systems do not tell capitals apart.
        while name.casefold() in taken:
            number += 1
            name = f'{image.stem}_{number}'
        taken.add(name.casefold())
        names.append(name)
    return names


def check_output_folder(folder: Path, images: Sequence[Path]) -> None:
    """Raise UsageError if a folder is a file, or if an image would be overwritten in it."""
    written = [folder / _PICTURES, folder / _RECORDS]
    for path in (folder, *written, *folder.parents):
        if path.exists() and not path.is_dir():
            raise UsageError(f'{path} is a file, not a folder: name another --out.')
    own = {os.path.realpath(path) for path in written}
    for image in images:
        if os.path.realpath(image.parent) in own:
            raise UsageError(f'{image} lies where the predictions go: name another --out.')


def write_prediction(prediction: Prediction, image: Path, name: str, folder: Path) -> None:
    """Write the picture, the label map if there is one, and last the record.

    Args:
        prediction: of the image.
        image: its path, which goes into the record.
        name: of the files, without a suffix.
        folder: gets them in its folders ``vis`` and ``preds``.

    Raises:
        UsageError: a file cannot be written.
    """
    record = {'image': str(image), **prediction.record}
    suffix = '.jpg' if image.suffix.lower() in ('.jpg', '.jpeg') else '.png'
    picture = _encoded(prediction.picture[..., ::-1], suffix)
    write_file(picture, folder / _PICTURES / f'{name}{suffix}')
    if prediction.label_map is not None:
        record['label_map'] = f'{name}.png'
        small = prediction.label_map.max() < 256
        label_map = prediction.label_map.astype(np.uint8 if small else np.uint16)
        write_file(_encoded(label_map, '.png'), folder / _RECORDS / f'{name}.png')
    write_file(f'{json.dumps(record)}\n'.encode(), folder / _RECORDS / f'{name}.json')


def _encoded(pixels: np.ndarray, suffix: str) -> bytes:
    return cv2.imencode(suffix, pixels)[1].tobytes()
