"""What is missing in a COCO dataset of MMDetection is told before anything is built."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, ClassVar

import pytest
from mmdet.datasets import CocoDataset
from mmengine.config import Config
from mmengine.registry import DefaultScope

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.data.check import check_data
from tests.data_checks import check_loader, sentence_about

CLASSES = ('RBC', 'WBC', 'Platelets')
IMAGES = ['0.jpg', '1.jpg', 'city/2.jpg', 'city/3.jpg']
LOAD = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', with_bbox=True)]
WRAPPERS: list[Callable[[dict], object]] = [
    lambda dataset: dataset,
    lambda dataset: dict(type='RepeatDataset', times=3, dataset=dataset),
    lambda dataset: dict(type='ConcatDataset', datasets=[dataset, dataset]),
    lambda dataset: dict(
        type='MultiImageMixDataset',
        pipeline=[],
        dataset=dict(type='ClassBalancedDataset', oversample_thr=0.1, dataset=dataset),
    ),
]


class OwnDataset(CocoDataset):
    """A user's dataset, which differs from COCO in its names only."""

    METAINFO: ClassVar[dict] = dict(classes=CLASSES)


@pytest.fixture(autouse=True)
def no_scope_is_left() -> Iterator[None]:
    """Check that the global default scope of the registries is left unchanged."""
    before = _scopes()
    yield
    assert _scopes() == before


def _scopes() -> dict[str, str]:
    return {name: kept.scope_name for name, kept in DefaultScope._instance_dict.items()}


@pytest.fixture
def table() -> dict:
    """Return an annotation file of four images; the last two have no box of RBC."""
    return dict(
        images=[dict(id=i, file_name=name, width=64, height=48) for i, name in enumerate(IMAGES)],
        categories=[dict(id=5 + i, name=name) for i, name in enumerate(CLASSES)],
        annotations=[
            dict(id=i, image_id=i, category_id=5 + (i > 1), bbox=[1, 1, 9, 9], area=81, iscrowd=0)
            for i in range(4)
        ],
    )


@pytest.fixture
def root(tmp_path: Path, table: dict) -> Path:
    """Return a complete data set."""
    for name in IMAGES:
        image = tmp_path / 'images' / name
        image.parent.mkdir(parents=True, exist_ok=True)
        image.touch()
    (tmp_path / 'ann.json').write_text(json.dumps(table))
    return tmp_path


def dataset(root: Path, **changes: object) -> dict:
    """Return the config of a dataset in ``root``."""
    settings = dict(
        type='CocoDataset',
        metainfo=dict(classes=CLASSES),
        data_root=f'{root}/',
        ann_file='ann.json',
        data_prefix=dict(img='images/'),
        pipeline=LOAD,
    )
    return {**settings, **changes}


check = partial(check_loader, 'mmdet')
said = partial(sentence_about, 'mmdet')


def check_metric(root: Path, **changes: object) -> None:
    """Check a config with a metric only."""
    metric = dict(type='CocoMetric', ann_file=f'{root}/ann.json') | changes
    check_data(Config(dict(default_scope='mmdet', val_evaluator=metric)), 'val_dataloader')


KINDS = [
    dict(),
    dict(type='mmdet.CocoDataset'),
    dict(type=CocoDataset),
    dict(type='CityscapesDataset'),
    dict(type=OwnDataset, metainfo=None),
    dict(test_mode=True),
    dict(filter_cfg=dict(filter_empty_gt=True, min_size=32)),
]


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('wrap', WRAPPERS)
def test_missing_images_are_counted(kind: dict, wrap: Callable, root: Path) -> None:
    part = wrap(dataset(root, **kind))
    check(part)
    for name in ('city/2.jpg', '1.jpg'):
        (root / 'images' / name).rename(root / 'images' / f'{name}.part')
    for loader in ('train_dataloader', 'val_dataloader'):
        assert (
            f'2 of 4 images that the {loader} of the config reads by {root}/ann.json are not in '
            f'{root}/images/, the first is {root}/images/1.jpg: put them there'
        ) in said(part, loader)


def test_only_images_that_the_dataset_keeps_are_needed(root: Path, table: dict) -> None:
    for name in IMAGES[2:]:
        (root / 'images' / name).unlink()
    kept = dict(metainfo=dict(classes=('RBC',)), filter_cfg=dict(filter_empty_gt=True))
    check(dataset(root, **kept))
    assert '2 of 4' in said(dataset(root, **kept, test_mode=True))
    assert '2 of 4' in said(dataset(root, **kept | dict(filter_cfg=None)))
    assert '2 of 4' in said(dataset(root, filter_cfg=dict(filter_empty_gt=True)))
    for image in table['images'][2:]:
        image['width'] = 31
    (root / 'ann.json').write_text(json.dumps(table))
    check(dataset(root, filter_cfg=dict(min_size=32)))
    assert '2 of 4' in said(dataset(root, filter_cfg=dict(min_size=31)))


class OwnFilter(CocoDataset):
    """A user's dataset, which skips images by a rule of its own."""

    def filter_data(self) -> list[dict]:
        return [image for image in self.data_list if 'city' in image['img_path']]


def test_own_filter_of_a_dataset_is_asked(root: Path) -> None:
    (root / 'images/1.jpg').unlink()
    check(dataset(root, type=OwnFilter))
    (root / 'images/city/2.jpg').unlink()
    assert '1 of 2 images' in said(dataset(root, type=OwnFilter))


def test_only_images_that_indices_leave_are_needed(root: Path) -> None:
    (root / 'images/1.jpg').unlink()
    for indices in (1, -2, [0, 2, 3]):
        check(dataset(root, indices=indices))
    assert '1 of 2' in said(dataset(root, indices=2))
    assert '1 of 3' in said(dataset(root, indices=-3))
    assert '1 of 1' in said(dataset(root, indices=[1]))


def test_images_that_are_not_read_from_files_are_not_needed(root: Path) -> None:
    (root / 'images/1.jpg').unlink()
    for load in (
        dict(type='LoadImageFromDatabase'),
        dict(type='LoadImageFromFile', backend_args=dict(backend='lmdb')),
    ):
        check(dataset(root, pipeline=[load, LOAD[1]]))


DAMAGED = {
    'cut': lambda whole: whole[: len(whole) // 2],
    'cut by a byte': lambda whole: whole[:-1],
    'empty': lambda whole: b'',
    'a page': lambda whole: b'<html>Not found</html>',
    'a pointer': lambda whole: b'version https://git-lfs.github.com/spec/v1\n',
    'packed': lambda whole: b'\x1f\x8b\x08\x00' + whole,
    'nested': lambda whole: b'[' * 100_000,
}


@pytest.mark.parametrize('damage', DAMAGED)
def test_damaged_annotation_file_is_named(damage: str, root: Path) -> None:
    file = root / 'ann.json'
    check_metric(root)
    file.write_bytes(DAMAGED[damage](file.read_bytes()))
    end = f'of the config reads {file}, which is empty, cut off or damaged: unpack, download or'
    for wrap in WRAPPERS:
        assert f'the val_dataloader {end}' in said(wrap(dataset(root)), 'val_dataloader')
    with pytest.raises(UsageError) as caught:
        check_metric(root)
    assert f'the val_evaluator {end}' in str(caught.value)


OTHER = {
    'a list': lambda table: list(table.values()),
    'a number': lambda table: 5,
    'no images': lambda table: {**table, 'images': None},
    'no table of images': lambda table: {k: v for k, v in table.items() if k != 'images'},
    'no categories': lambda table: {k: v for k, v in table.items() if k != 'categories'},
    'no names': lambda table: {**table, 'categories': [dict(id=5)]},
    'names alone': lambda table: {**table, 'categories': CLASSES},
    'no ids': lambda table: {**table, 'images': [dict(file_name='0.jpg')]},
    'mapping of images': lambda table: {**table, 'images': {'0.jpg': [[1, 1, 9, 9]]}},
    'boxes alone': lambda table: {**table, 'annotations': [dict(bbox=[1, 1, 9, 9])]},
}


@pytest.mark.parametrize('kind', OTHER)
def test_file_of_another_format_is_named(kind: str, root: Path, table: dict) -> None:
    (root / 'ann.json').write_text(json.dumps(OTHER[kind](table)))
    end = f'of the config reads {root}/ann.json, which is not in COCO format, which has images,'
    assert f'the train_dataloader {end}' in said(dataset(root))
    with pytest.raises(UsageError) as caught:
        check_metric(root)
    assert f'the val_evaluator {end}' in str(caught.value)


def test_folder_in_place_of_the_file_is_named(root: Path) -> None:
    assert f'reads {root}/images, which cannot be read (' in said(dataset(root, ann_file='images'))


@pytest.mark.parametrize('key', ['file_name', 'width', 'height'])
def test_image_without_name_or_size_is_told(key: str, root: Path, table: dict) -> None:
    del table['images'][2][key]
    (root / 'ann.json').write_text(json.dumps(table))
    assert 'has an image without file_name, width or height' in said(dataset(root))
    # A metric compares boxes only.
    check_metric(root)


def test_annotations_are_needed_where_they_are_used(root: Path, table: dict) -> None:
    del table['annotations']
    (root / 'ann.json').write_text(json.dumps(table))
    end = f'of the config reads {root}/ann.json, which has no annotations: name a file that'
    assert f'the train_dataloader {end}' in said(dataset(root))
    with pytest.raises(UsageError) as caught:
        check_metric(root)
    assert f'the val_evaluator {end}' in str(caught.value)
    # Predictions on a test set without ground truth, and unlabelled images beside labelled ones.
    check(dataset(root, test_mode=True))
    check_metric(root, format_only=True, outfile_prefix='x')
    check(dataset(root, pipeline=[LOAD[0], dict(type='LoadEmptyAnnotations')]))
    only_labelled = dict(filter_cfg=dict(filter_empty_gt=True))
    unlabelled = dataset(root, pipeline=LOAD[:1], **only_labelled)
    assert "but filter_cfg={'filter_empty_gt': True} leaves none of its images" in said(unlabelled)


def test_classes_that_are_not_in_the_file_are_told(root: Path) -> None:
    for kind in (dict(), dict(test_mode=True)):
        own = said(dataset(root, metainfo=dict(classes=('cat', 'dog')), **kind))
        assert "expects the classes ('cat', 'dog'), but the categories of" in own
        assert f"{root}/ann.json are ('RBC', 'WBC', 'Platelets'): copy" in own
        assert 'into metainfo=dict(classes=...)' in own
        coco = said(dataset(root, metainfo=None, **kind))
        assert "('person', 'bicycle', 'car', 'motorcycle', 'airplane', … (80 in all))" in coco
    cityscapes = said(dataset(root, type='CityscapesDataset', metainfo=None))
    assert "'motorcycle', 'bicycle'), but the categories of" in cityscapes


def test_some_of_the_classes_are_enough(root: Path) -> None:
    check(dataset(root, metainfo=dict(classes=('WBC', 'cat'))))
    # One class without its comma is for MMDetection's own check to tell.
    check(dataset(root, metainfo=dict(classes='RBC')))
    (root / 'classes.txt').write_text('RBC\nWBC\n')
    check(dataset(root, metainfo=dict(classes=str(root / 'classes.txt'))))


def test_file_that_leaves_no_image_is_told(root: Path, table: dict) -> None:
    rules = dict(filter_empty_gt=True, min_size=32)
    part = dataset(root, metainfo=dict(classes=('Platelets',)), filter_cfg=rules)
    assert f'ann.json, but filter_cfg={rules} leaves none of its images: ' in said(part)
    assert 'leaves none' in said(dataset(root, filter_cfg=dict(min_size=49)))
    (root / 'ann.json').write_text(json.dumps({**table, 'images': [], 'annotations': []}))
    assert f'reads {root}/ann.json, which lists no images: ' in said(dataset(root))


def test_each_file_is_read_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load, read = json.load, []

    def note(file: IO, **more: object) -> object:
        read.append(Path(file.name).name)
        return load(file, **more)

    monkeypatch.setattr(json, 'load', note)
    (root / 'val.json').write_bytes((root / 'ann.json').read_bytes())
    val = dataset(root, ann_file='val.json', test_mode=True)
    metric = dict(type='CocoMetric', ann_file=f'{root}/./val.json')
    settings = Config(
        dict(
            default_scope='mmdet',
            train_dataloader=dict(dataset=WRAPPERS[2](dataset(root))),
            val_dataloader=dict(dataset=val),
            val_evaluator=[metric, dict(metric, metric='proposal')],
        )
    )
    check_data(settings, 'train_dataloader', 'val_dataloader')
    assert read == ['ann.json', 'val.json']
    # A later call sees what changed.
    (root / 'val.json').write_text('')
    with pytest.raises(UsageError, match='cut off'):
        check_data(settings, 'val_dataloader')


def test_remote_data_are_passed_over(root: Path) -> None:
    (root / 'ann.json').write_text('')
    check(dataset(root, backend_args=dict(backend='petrel')))
    check(dataset(root, ann_file='s3://bucket/ann.json'))
    check(dataset(root, data_prefix=dict(img='s3://bucket/images')))
    check_metric(root, backend_args=dict(backend='petrel'))
    check_metric(root, ann_file='s3://bucket/ann.json')


class OwnFormat(CocoDataset):
    """A user's dataset, which reads its files in its own way."""

    def load_data_list(self) -> list[dict]:
        return []


@pytest.mark.parametrize(
    'changes',
    [
        dict(type='UnknownDataset'),
        dict(type='unknown_package.UnknownDataset'),
        dict(unknown=1),
        dict(type='CocoPanopticDataset'),
        dict(type='VOCDataset'),
        dict(type=OwnFormat),
    ],
)
def test_what_is_not_read_as_coco_is_left_to_the_toolbox(changes: dict, root: Path) -> None:
    (root / 'ann.json').write_text('')
    check(dataset(root, **changes))


@pytest.mark.parametrize('metric', ['CrowdHumanMetric', 'UnknownMetric', 'unknown.UnknownMetric'])
def test_other_metrics_are_left_to_the_toolbox(metric: str, root: Path) -> None:
    (root / 'ann.json').write_text('')
    check_metric(root, type=metric)
