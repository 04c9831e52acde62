"""Images of CIFAR-10 in folders are read as whole batches."""

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

pytest.importorskip('mmpretrain')

from sn_openmmlab.errors import UsageError
from studies.experiments.cifar_images import CLASSES, CifarImages, whole_batch


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two images of each class, of one grey that is ten times the label, brighter in the second."""
    for label, name in enumerate(CLASSES):
        (tmp_path / name).mkdir()
        for i in range(2):
            grey = np.full((32, 32, 3), 10 * label + 5 * i + 100, np.uint8)
            cv2.imwrite(str(tmp_path / name / f'{i}.jpg'), grey)
    return tmp_path


def test_batch_has_the_images_and_labels_of_its_indices(root: Path) -> None:
    images = CifarImages(str(root))
    assert len(images) == 20
    batch = whole_batch(images.__getitems__([0, 1, 19]))
    assert batch['inputs'].dtype == torch.uint8
    assert batch['inputs'].shape == (3, 3, 32, 32)
    assert batch['inputs'].float().mean((1, 2, 3)).tolist() == [100, 105, 195]
    assert [sample.gt_label.item() for sample in batch['data_samples']] == [0, 0, 9]


def test_every_step_th_image_of_a_class_is_taken(root: Path) -> None:
    assert len(CifarImages(str(root), step=2)) == 10


def test_training_images_are_crops_of_padded_ones_and_differ(root: Path) -> None:
    images = CifarImages(str(root), augment=True)
    np.random.seed(0)
    batches = [images.__getitems__([0] * 50)['inputs'] for _ in range(2)]
    assert not torch.equal(*batches)
    for image in torch.cat(batches):
        assert set(image.unique().tolist()) <= {0, 100}
        # At most 4 rows and columns are padding.
        assert (image[0] == 100).sum() >= 28 * 28


def test_colours_stay_in_order_and_a_flip_mirrors(root: Path) -> None:
    picture = np.zeros((32, 32, 3), np.uint8)
    picture[:, :16, 0] = 200
    cv2.imwrite(str(root / 'airplane/0.jpg'), picture, [cv2.IMWRITE_JPEG_QUALITY, 100])
    np.random.seed(0)
    blue = CifarImages(str(root), augment=True).__getitems__([0] * 20)['inputs'][:, 0].float()
    left = blue[:, :, :12].mean((1, 2)) > blue[:, :, 20:].mean((1, 2))
    assert 0 < left.sum() < 20


def test_missing_folder_and_broken_image_are_named(root: Path) -> None:
    (root / 'truck/0.jpg').write_bytes(b'no image')
    with pytest.raises(UsageError, match=r'truck/0\.jpg cannot be read as an image'):
        CifarImages(str(root))
    for file in (root / 'ship').iterdir():
        file.unlink()
    with pytest.raises(UsageError, match='ship has no JPEG images'):
        CifarImages(str(root))
