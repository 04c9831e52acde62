"""Doubtful annotations give a warning each, and good ones none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('mmdet')

from mmengine.config import Config

from sn_openmmlab.runs.data.check import check_data
from tests.data_checks import sentence_about

CLASSES = ('bright', 'dark')
LOAD = [dict(type='LoadAnnotations', with_bbox=True)]


def write(folder: Path, change: Callable[[dict], Any]) -> dict:
    """Write an annotation file of two images, changed, and return the config of its dataset."""
    box = dict(bbox=[1, 1, 9, 9], area=81, iscrowd=0)
    table = dict(
        images=[dict(id=i, file_name=f'{i}.jpg', width=64, height=48) for i in range(2)],
        annotations=[dict(id=i, image_id=i, category_id=i, **box) for i in range(2)],
        categories=[dict(id=i, name=name) for i, name in enumerate(CLASSES)],
    )
    change(table)
    (folder / 'train.json').write_text(json.dumps(table))
    return dict(
        type='CocoDataset',
        data_root=str(folder),
        ann_file='train.json',
        data_prefix=dict(img=''),
        metainfo=dict(classes=CLASSES),
        pipeline=LOAD,
    )


def every(table: dict, **values: Any) -> None:
    for annotation in table['annotations']:
        annotation.update(values)


@pytest.mark.parametrize(
    ('change', 'said'),
    [
        (lambda t: None, []),
        (lambda t: t['annotations'][0].update(area=0), ['has 1 of 2 boxes without an area']),
        (
            lambda t: t['annotations'][0].update(bbox=[90, 1, 9, 9]),
            ['has boxes outside or far beyond 1 of 2 images, such as 0.jpg'],
        ),
        (
            lambda t: t['annotations'][0].update(segmentation=[[1, 1, 2, 2]]),
            ['has 1 masks of polygons without three points'],
        ),
        (lambda t: t['annotations'][0].update(image_id=9), ['has annotations of 1 images']),
        (lambda t: t['annotations'][0].update(category_id=9), ['categories that it does not list']),
        (lambda t: every(t, iscrowd=1), ['has no object of the classes']),
        (lambda t: every(t, area=0), ['has 2 of 2 boxes', 'has no object of the classes']),
        (lambda t: t['images'].append(dict(t['images'][0])), ['has 1 images with the id of an']),
        (
            lambda t: t['categories'].append(dict(id=7, name='dark')),
            ['has the category dark more than once'],
        ),
        (
            lambda t: t['categories'].pop(),
            ['has no category dark', 'categories that it does not list, such as 1'],
        ),
    ],
)
def test_warnings(
    change: Callable, said: list[str], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    loader = dict(dataset=write(tmp_path, change), sampler=dict(type='DefaultSampler'))
    config = Config(dict(default_scope='mmdet', train_dataloader=loader))
    check_data(config, 'train_dataloader')
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(said)
    for line, part in zip(lines, said, strict=True):
        assert line.startswith(f'warning: {tmp_path}/train.json of the train_dataloader has ')
        assert part in line


def test_broken_annotation_is_an_error(tmp_path: Path) -> None:
    dataset = write(tmp_path, lambda table: table['annotations'][1].update(bbox=None))
    said = sentence_about('mmdet', dataset)
    assert 'cannot be used, since annotation 1 has the bbox None' in said


@pytest.mark.parametrize('width', [0, -64, '64', None])
def test_size_of_an_image_is_a_positive_number(width: object, tmp_path: Path) -> None:
    dataset = write(tmp_path, lambda table: table['images'][1].update(width=width))
    assert f'has 1.jpg of {width!r} × 48 pixels' in sentence_about('mmdet', dataset)
