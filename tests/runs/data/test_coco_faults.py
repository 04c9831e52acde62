"""Faults of annotations are found while a file is read."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from sn_openmmlab.runs.data.coco import read_coco
from sn_openmmlab.runs.data.coco_faults import AnnotationFaults

IMAGE = dict(id=0, file_name='0.jpg', width=64, height=48)
GOOD = dict(id=1, image_id=0, category_id=0, bbox=[1, 1, 9, 9], area=81, iscrowd=0)
SQUARE = [1, 1, 9, 1, 9, 9]


def faults_of(tmp_path: Path, *annotations: dict[str, Any]) -> AnnotationFaults:
    table = dict(images=[IMAGE], annotations=annotations, categories=[dict(id=0, name='a')])
    (tmp_path / 'a.json').write_text(json.dumps(table))
    return read_coco(str(tmp_path / 'a.json')).faults


@pytest.mark.parametrize(
    ('wrong', 'said'),
    [
        (dict(bbox=[1, 2, 3]), 'the bbox [1, 2, 3], which is not four numbers'),
        (dict(bbox=None), 'the bbox None'),
        (dict(bbox=['1', '1', '9', '9']), "the bbox ['1', '1', '9', '9']"),
        (dict(bbox=[1, math.nan, 9, 9]), 'a number that is NaN or infinite'),
        (dict(area=math.inf), 'a number that is NaN or infinite'),
        (dict(segmentation=[[1, 1, math.nan, 1, 9, 9]]), 'a number that is NaN or infinite'),
        (dict(area='large'), "the area 'large', which is no number"),
        (dict(iscrowd='no'), "iscrowd='no', which is neither 0 nor 1"),
        (dict(segmentation='polygon'), "the segmentation 'polygon'"),
        (dict(segmentation=[1, 1, 9, 1, 9, 9]), 'a segmentation that is no list of polygons'),
        (dict(segmentation=[['a', 'b']]), 'a polygon of something else than numbers'),
        (dict(segmentation=[[0, 0, 1e12, 0, 9, 9]]), 'a polygon with the coordinate 1000000000000'),
        (dict(segmentation=dict(size=[48, 64])), 'an RLE without size or counts'),
        (
            dict(segmentation=dict(size=[2, 3], counts=[2, 3])),
            'an RLE of 5 pixels for an image of 6',
        ),
    ],
)
def test_annotation_that_cannot_be_used(wrong: dict, said: str, tmp_path: Path) -> None:
    broken = faults_of(tmp_path, GOOD, {**GOOD, 'id': 7, **wrong}).broken
    assert broken.startswith(f'annotation 7 has {said}')


def test_good_annotations_have_no_fault(tmp_path: Path) -> None:
    masks = [[], None, [SQUARE], dict(size=[2, 3], counts=[2, 4]), dict(size=[2, 3], counts='abc')]
    faults = faults_of(tmp_path, *({**GOOD, 'segmentation': mask} for mask in masks))
    assert (faults.broken, faults.empty, faults.flat, faults.crowds) == ('', 0, 0, 0)
    assert faults.number == len(masks)
    assert faults.misplaced([IMAGE]) == []


def test_doubtful_annotations_are_counted(tmp_path: Path) -> None:
    faults = faults_of(
        tmp_path,
        {**GOOD, 'bbox': [1, 1, 0, 9]},
        {**GOOD, 'bbox': [9, 9, -3, -3]},
        {**GOOD, 'area': 0},
        {**GOOD, 'iscrowd': 1},
        {**GOOD, 'segmentation': [[1, 1, 9, 9]]},
        {**GOOD, 'segmentation': [[1, 1, 9, 9, 2, 2, 3]]},
    )
    assert (faults.broken, faults.empty, faults.flat, faults.crowds) == ('', 3, 2, 1)


@pytest.mark.parametrize(
    ('box', 'is_misplaced'),
    [
        ([0, 0, 64, 48], False),
        ([60, 40, 20, 20], False),
        ([64, 0, 9, 9], True),
        ([0, 48, 9, 9], True),
        ([-9, 0, 9, 9], True),
        ([0, -9, 9, 9], True),
        ([0, 0, 129, 9], True),
        ([-65, 0, 99, 9], True),
    ],
)
@pytest.mark.parametrize('first', [True, False])
def test_box_outside_or_far_beyond_its_image(
    box: list[int], is_misplaced: bool, first: bool, tmp_path: Path
) -> None:
    boxes = [{**GOOD, 'bbox': box}, GOOD]
    faults = faults_of(tmp_path, *(boxes if first else boxes[::-1]))
    assert faults.misplaced([IMAGE]) == (['0.jpg'] if is_misplaced else [])


def test_nan_in_what_nothing_reads_is_no_fault(tmp_path: Path) -> None:
    faults = faults_of(tmp_path, {**GOOD, 'score': math.nan, 'attributes': dict(age=math.inf)})
    assert faults.broken == ''


def test_nan_of_an_image_is_not_that_of_the_next_annotation(tmp_path: Path) -> None:
    table = dict(
        categories=[dict(id=0, name='a')],
        images=[{**IMAGE, 'width': math.nan}],
        annotations=[GOOD],
    )
    (tmp_path / 'a.json').write_text(json.dumps(table))
    file = read_coco(str(tmp_path / 'a.json'))
    assert file.faults.broken == ''
    assert math.isnan(file.images[0]['width'])
