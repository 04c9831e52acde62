"""Mistakes in annotation files: those in COCO format, and lists of images and labels."""

import json
from collections.abc import Callable
from typing import Any

from studies.mistakes.case import Case, Scene

Table = dict[str, Any]


def annotation_cases() -> list[Case]:
    """Return all of them."""
    return [*_files(), *_tables(), *_boxes(), *_masks(), *_evaluation(), *_lists()]


def _files() -> list[Case]:
    return [
        _file('the annotation file is missing', lambda file: file.unlink()),
        _file('the annotation file is empty', lambda file: file.write_bytes(b'')),
        _file('the annotation file is cut off', lambda file: _cut(file, 0.7), 'mask'),
        _file('the annotation file is a JPEG', lambda file: file.write_bytes(b'\xff\xd8\xff\xe0')),
        _file('the annotation file is a list', lambda file: file.write_text('[1, 2]')),
        _file('the annotation file is a number', lambda file: file.write_text('7')),
        _file('the annotation file is a folder', lambda file: (file.unlink(), file.mkdir())),
        _file('the annotation file is in UTF-16', lambda f: f.write_text(f.read_text(), 'utf-16')),
        _file('the annotation file is `[[[[…`', lambda file: file.write_text('[' * 100_000)),
        _file('nobody may read the annotation file', lambda file: file.chmod(0)),
    ]


def _tables() -> list[Case]:
    return [
        _table('there are no images', lambda t: t.update(images=[])),
        _table('there are no annotations', lambda t: t.update(annotations=[])),
        _table('there are no categories', lambda t: t.update(categories=[])),
        *(
            _table(f'there is no table of {name}', lambda t, name=name: t.pop(name))
            for name in ('images', 'annotations', 'categories')
        ),
        _table('the categories have other names', _rename_categories),
        _table('one of two categories is missing', lambda t: t['categories'].pop()),
        _table('two categories have the same id', lambda t: t['categories'][1].update(id=0)),
        _table('an image has no size', lambda t: t['images'][2].pop('width')),
        _table('an image has the size 0', lambda t: t['images'][2].update(width=0)),
        _table('an image has a negative size', lambda t: t['images'][2].update(height=-48)),
        _table("an image's size is text", lambda t: t['images'][2].update(width='64px')),
        _table("an image's size is not that of the file", lambda t: _scale_sizes(t, 2)),
        _table('an image has no file name', lambda t: t['images'][2].pop('file_name')),
        _table("an image's file name is a number", lambda t: t['images'][2].update(file_name=2)),
        _table(
            "an image's file name leads out", lambda t: t['images'][2].update(file_name='../../x')
        ),
        _table('an image has no id', lambda t: t['images'][2].pop('id')),
        _table('two images have the same id', lambda t: t['images'][2].update(id=1)),
        _table('the ids of images are text', _name_images),
        _table('an image is null', lambda t: t['images'].append(None)),
        _table('an annotation is null', lambda t: t['annotations'].append(None)),
        _table('no image has an object of the classes', _other_categories),
        Case('box', 'no image has an object, and all are kept', _keep_empty),
        Case('mask', 'no image has an object, and all are kept', _keep_empty),
        Case('box', 'half of the images have no object, and all are kept', _keep_half),
    ]


def _boxes() -> list[Case]:
    return [
        *_box('a box has no area', bbox=[10, 10, 0, 0], area=0),
        *_box('a box has no width', bbox=[10, 10, 0, 20], area=0),
        *_box('a box is negative', bbox=[30, 30, -20, -20], area=400),
        *_box('a box lies outside the image', bbox=[500, 500, 20, 20]),
        *_box('a box reaches out of the image', bbox=[40, 30, 100, 100]),
        *_box('a box is NaN', bbox=[10, float('nan'), 20, 20]),
        *_box('a box is infinite', bbox=[10, 10, float('inf'), 20]),
        *_box('a box is huge', bbox=[0, 0, 1e30, 1e30]),
        *_box('a box has three numbers', bbox=[10, 10, 20]),
        *_box('a box is text', bbox=['10', '10', '20', '20']),
        *_box('a box is null', bbox=None),
        *_box('a box is a table', bbox=dict(x=10, y=10, w=20, h=20)),
        *_box('an area is 0', area=0),
        *_box('an area is NaN', area=float('nan')),
        *_box('an area is text', area='large'),
        *_box('a category does not exist', category_id=99),
        *_box('a category is text', category_id='dark'),
        *_box('a category is null', category_id=None),
        *_box('an image does not exist', image_id=99),
        *_box('an annotation is a crowd', iscrowd=1),
        *_box('iscrowd is text', iscrowd='no'),
        _all_boxes('every box has no area', bbox=[10, 10, 0, 0], area=0),
        _all_boxes('every box lies outside the image', bbox=[500, 500, 20, 20]),
        _all_boxes('every box is NaN', bbox=[float('nan')] * 4),
        _all_boxes('every annotation is a crowd', iscrowd=1),
        _all_boxes('all annotations have the same id', id=1),
        *(
            _without_key(key)
            for key in ('bbox', 'area', 'id', 'image_id', 'category_id', 'iscrowd')
        ),
    ]


def _masks() -> list[Case]:
    size = [48, 64]
    return [
        *_mask('a mask is missing', None),
        *_mask('a mask is empty', []),
        *_mask('a mask is text', 'polygon'),
        *_mask('a polygon has two points', [[10, 10, 20, 20]]),
        *_mask('a polygon has an odd number of numbers', [[10, 10, 20, 20, 30, 10, 5]]),
        *_mask('a polygon is NaN', [[10, 10, float('nan'), 20, 30, 10]]),
        *_mask('a polygon lies outside the image', [[500, 500, 520, 500, 520, 520]]),
        *_mask('a polygon is huge', [[0, 0, 1e12, 0, 1e12, 1e12]]),
        *_mask('a polygon is text', [['a', 'b', 'c', 'd', 'e', 'f']]),
        *_mask('a polygon is flat', [10, 10, 20, 20, 30, 10]),
        *_mask('an RLE has another size', dict(size=[10, 10], counts=[50, 50])),
        *_mask('an RLE does not cover the image', dict(size=size, counts=[5, 5])),
        *_mask('an RLE is too long', dict(size=size, counts=[100_000])),
        *_mask('an RLE has no counts', dict(size=size)),
        *_mask('an RLE is no code', dict(size=size, counts='not a code')),
    ]


def _evaluation() -> list[Case]:
    def other_images(table: Table) -> None:
        for image in table['images']:
            image['id'] += 100
        for annotation in table['annotations']:
            annotation['image_id'] += 100

    def own_file(scene: Scene) -> None:
        table = json.loads((scene.data / 'annotations/val.json').read_text())
        other_images(table)
        (scene.data / 'annotations/other.json').write_text(json.dumps(table))
        for evaluator in ('val_evaluator', 'test_evaluator'):
            scene.set(f'{evaluator}.ann_file', 'data/annotations/other.json')

    return [
        Case('box', 'the evaluator reads annotations of other images', own_file),
        _table('validation: there are no annotations', lambda t: t.update(annotations=[]), 'val'),
        _table(
            'validation: a box is NaN', lambda t: _first(t).update(bbox=[float('nan')] * 4), 'val'
        ),
        _table('validation: a box is null', lambda t: _first(t).update(bbox=None), 'val'),
        _table('validation: an area is missing', lambda t: _first(t).pop('area'), 'val'),
        _table('validation: iscrowd is missing', lambda t: _first(t).pop('iscrowd'), 'val'),
    ]


def _lists() -> list[Case]:
    def file(change: str, text: Callable[[str], str | bytes]) -> Case:
        def spoil(scene: Scene) -> None:
            _use_list(scene)
            path = scene.data / 'classes/train.txt'
            written = text(path.read_text())
            path.write_bytes(written if isinstance(written, bytes) else written.encode())

        return Case('class', f'list of labels: {change}', spoil)

    return [
        file('it is empty', lambda text: ''),
        file('it is cut off in a line', lambda text: text[:-4]),
        file('a line has no label', lambda text: text.replace(' 1', '', 1)),
        file('a label is text', lambda text: text.replace(' 1', ' dark', 1)),
        file('a label is negative', lambda text: text.replace(' 1', ' -1', 1)),
        file('a label is beyond the classes', lambda text: text.replace(' 1', ' 7', 1)),
        file('a label is no whole number', lambda text: text.replace(' 1', ' 0.5', 1)),
        file('an image does not exist', lambda text: 'bright/99.jpg 0\n' + text),
        file('a line is empty', lambda text: '\n' + text),
        file('it is no text', lambda text: b'\xff\xd8\xff\xe0' * 9),
        file('all labels are the same', lambda text: text.replace(' 1', ' 0')),
    ]


def _use_list(scene: Scene) -> None:
    scene.config['train_dataloader']['dataset'].update(ann_file='train.txt', data_prefix='train')


def _cut(file: Any, share: float) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])


def _file(change: str, spoil: Callable[[Any], Any], task: str = 'box') -> Case:
    return Case(task, change, lambda scene: spoil(scene.data / 'annotations/train.json'))


def _table(change: str, spoil: Callable[[Table], Any], split: str = 'train') -> Case:
    return Case('box', change, lambda scene: _edit(scene, spoil, split))


def _edit(scene: Scene, spoil: Callable[[Table], Any], split: str = 'train') -> None:
    file = scene.data / f'annotations/{split}.json'
    table = json.loads(file.read_text())
    spoil(table)
    file.write_text(json.dumps(table))


def _box(change: str, **wrong: Any) -> list[Case]:
    return [Case('box', change, lambda scene: _edit(scene, lambda t: _first(t).update(wrong)))]


def _all_boxes(change: str, **wrong: Any) -> Case:
    def spoil(table: Table) -> None:
        for annotation in table['annotations']:
            annotation.update(wrong)

    return Case('box', change, lambda scene: _edit(scene, spoil))


def _without_key(key: str) -> Case:
    change = f'an annotation has no {key}'
    return Case('box', change, lambda scene: _edit(scene, lambda t: _first(t).pop(key)))


def _mask(change: str, mask: Any) -> list[Case]:
    def spoil(table: Table) -> None:
        _first(table)['segmentation'] = mask

    return [Case('mask', change, lambda scene: _edit(scene, spoil))]


def _first(table: Table) -> dict[str, Any]:
    return table['annotations'][0]


def _rename_categories(table: Table) -> None:
    for category in table['categories']:
        category['name'] += 'er'


def _other_categories(table: Table) -> None:
    for annotation in table['annotations']:
        annotation['category_id'] = 7
    table['categories'].append(dict(id=7, name='grey'))


def _scale_sizes(table: Table, factor: int) -> None:
    for image in table['images']:
        image.update(width=image['width'] * factor, height=image['height'] * factor)


def _name_images(table: Table) -> None:
    for image in table['images']:
        image['id'] = f'image {image["id"]}'
    for annotation in table['annotations']:
        annotation['image_id'] = f'image {annotation["image_id"]}'


def _keep_empty(scene: Scene) -> None:
    _edit(scene, lambda table: table.update(annotations=[]))
    scene.set('train_dataloader.dataset.filter_cfg', dict(filter_empty_gt=False))


def _keep_half(scene: Scene) -> None:
    _edit(scene, lambda table: table.update(annotations=table['annotations'][::2]))
    scene.set('train_dataloader.dataset.filter_cfg', dict(filter_empty_gt=False))
