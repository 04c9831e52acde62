"""The written files agree with each other, as pycocotools and Pillow read them."""

import json

import numpy as np
import pytest
from PIL import Image
from pycocotools.coco import COCO

from studies.demo.scene import Scene
from studies.demo.split import write_split


@pytest.fixture(scope='module', params=['train', 'val'])
def split(request):
    return request.param


@pytest.fixture(scope='module')
def coco(demo_root, split):
    return COCO(demo_root / 'annotations' / f'instances_{split}.json')


def _read(demo_root, kind, split, image):
    return Image.open(demo_root / kind / split / image['file_name'])


def test_every_image_has_a_picture_and_a_label_map(demo_root, split, coco):
    names = [f'{index:06d}.png' for index in range({'train': 6, 'val': 3}[split])]
    assert [image['file_name'] for image in coco.dataset['images']] == names
    for kind, mode in (('images', 'RGB'), ('labels', 'L')):
        assert sorted(path.name for path in (demo_root / kind / split).iterdir()) == names
        for image in coco.dataset['images']:
            picture = _read(demo_root, kind, split, image)
            assert picture.mode == mode
            assert picture.size == (image['width'], image['height']) == (256, 192)


def test_categories_are_the_ten_digits_from_1(coco):
    expected = [{'id': digit + 1, 'name': str(digit)} for digit in range(10)]
    assert coco.dataset['categories'] == expected
    assert {a['category_id'] for a in coco.dataset['annotations']} <= set(range(1, 11))


def test_boxes_and_areas_are_those_of_the_masks(coco):
    for annotation in coco.dataset['annotations']:
        mask = coco.annToMask(annotation)
        rows, columns = np.nonzero(mask)
        x, y, width, height = annotation['bbox']
        assert annotation['area'] == mask.sum() > 0
        assert (x, x + width - 1) == (columns.min(), columns.max())
        assert (y, y + height - 1) == (rows.min(), rows.max())
        assert annotation['iscrowd'] == 0


def test_the_label_map_is_the_union_of_the_masks(demo_root, split, coco):
    for image_id, image in coco.imgs.items():
        expected = np.zeros((192, 256), int)
        for annotation in coco.imgToAnns[image_id]:
            mask = coco.annToMask(annotation).astype(bool)
            assert not expected[mask].any()
            expected[mask] = annotation['category_id']
        np.testing.assert_array_equal(_read(demo_root, 'labels', split, image), expected)


def test_ids_are_unique(coco):
    ids = [annotation['id'] for annotation in coco.dataset['annotations']]
    assert ids == list(range(1, len(ids) + 1))


def test_train_and_val_pictures_differ(demo_root):
    pictures = {path.read_bytes() for path in demo_root.glob('images/*/*.png')}
    assert len(pictures) == 9


def test_the_record_counts_the_annotations(demo_root, split, coco):
    record = json.loads((demo_root / 'demo.json').read_text())
    assert record['instances'][split] == len(coco.dataset['annotations']) >= 3


def test_every_digit_has_a_crop_in_the_folder_of_its_class(demo_root, split, coco):
    classes = {category['id']: category['name'] for category in coco.dataset['categories']}
    expected = set()
    for image_id, annotations in coco.imgToAnns.items():
        for i, annotation in enumerate(annotations):
            expected.add(f'{classes[annotation["category_id"]]}/{image_id - 1:06d}_{i}.png')
    folder = demo_root / 'digits' / split
    found = {path.relative_to(folder).as_posix() for path in folder.glob('*/*')}
    assert found == expected
    # A class without an image has a folder, so that both splits number the classes alike.
    assert {path.name for path in folder.iterdir()} == set(classes.values())
    assert {Image.open(path).size for path in folder.glob('*/*')} == {(32, 32)}


def test_crops_keep_their_colours(tmp_path):
    mask = np.zeros((128, 128), bool)
    mask[40:90, 50:80] = True
    red = np.where(mask[..., None], (255, 0, 0), 0).astype(np.uint8)
    scene = Scene(red, np.array([7]), mask[None])
    write_split(tmp_path, 'val', [scene], '0123456789', np.random.default_rng(0))
    crop = np.asarray(Image.open(tmp_path / 'digits/val/7/000000_0.png'))
    assert crop[16, 16].tolist() == [255, 0, 0]
    assert crop[..., 1:].max() == 0
