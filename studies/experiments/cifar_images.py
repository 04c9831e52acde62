"""CIFAR-10 in memory, in whole batches.

MMPretrain's pipeline takes a large share of the time that a small network needs for an image.
"""

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from mmengine.registry import DATASETS, FUNCTIONS
from mmpretrain.structures import DataSample
from torch.utils.data import Dataset

from sn_openmmlab.errors import UsageError

# In the order of their labels.
CLASSES = (
    *('airplane', 'automobile', 'bird', 'cat', 'deer'),
    *('dog', 'frog', 'horse', 'ship', 'truck'),
)
_SIZE, _PADDING = 32, 4


@DATASETS.register_module()
class CifarImages(Dataset):
    """Images of CIFAR-10 in folders, one per class; a batch is read by its indices.

    Training images are padded by 4 black pixels, cropped to 32×32 and flipped, at random.

    Args:
        root: the folder with a folder for each class.
        step: take every `step`-th image of each class.
        augment: whether to crop and flip.

    Raises:
        UsageError: a folder or an image is missing or cannot be read.
    """

    def __init__(self, root: str, step: int = 1, augment: bool = False) -> None:
        self.metainfo = {'classes': CLASSES}
        files = [(f, k) for k, name in enumerate(CLASSES) for f in _files(Path(root) / name, step)]
        images = np.stack([_read(file) for file, _ in files])
        around = ((0, 0), (0, 0), (_PADDING, _PADDING), (_PADDING, _PADDING))
        self._images = np.pad(images, around) if augment else images
        self._labels = [label for _, label in files]
        self._augment = augment

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self._labels)

    def __getitems__(self, indices: list[int]) -> dict[str, Any]:
        """Return the inputs, uint8 (N, 3, 32, 32) in BGR, and data samples with the labels."""
        images = self._images[indices]
        if self._augment:
            images = np.stack([_crop_and_flip(image) for image in images])
        samples = [DataSample().set_gt_label(self._labels[index]) for index in indices]
        return {'inputs': torch.from_numpy(images), 'data_samples': samples}


@FUNCTIONS.register_module()
def whole_batch(batch: dict[str, Any]) -> dict[str, Any]:
    """Return a batch that the data set has put together."""
    return batch


def _crop_and_flip(image: np.ndarray) -> np.ndarray:
    top, left = np.random.randint(0, 2 * _PADDING + 1, 2)
    image = image[:, top : top + _SIZE, left : left + _SIZE]
    return image[..., ::-1] if np.random.rand() < 0.5 else image


def _files(folder: Path, step: int) -> list[Path]:
    files = sorted(folder.glob('*.jpg'))[::step]
    if not files:
        raise UsageError(f'{folder} has no JPEG images: put CIFAR-10 into {folder.parent}.')
    return files


def _read(file: Path) -> np.ndarray:
    image = cv2.imread(str(file))
    if image is None:
        raise UsageError(f'{file} cannot be read as an image: replace it.')
    return image.transpose(2, 0, 1)
