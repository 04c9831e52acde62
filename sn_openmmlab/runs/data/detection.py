"""Checking that a COCO file of MMDetection is whole, has the classes, and has its pictures."""

import os
from collections.abc import Callable, Iterable, Sequence

from mmengine.dataset import BaseDataset

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.data.coco_files import CocoFile
from sn_openmmlab.runs.data.datasets import is_remote, loads, open_dataset, registered, subset
from sn_openmmlab.runs.data.folders import missing_files


def check_detection(loader: str, settings: dict, read: Callable[[str], CocoFile]) -> None:
    """Raise UsageError where the annotation file of a dataset cannot be used, or lacks pictures.

    Args:
        loader: which data loader reads it.
        settings: its config; what does not read as CocoDataset does is passed over.
        read: read_coco, or a cache of it.
    """
    kind = registered(settings, 'DATASETS', 'mmdet')
    if kind is None or not _reads_coco(kind):
        return
    dataset = open_dataset(kind, settings, lazy_init=True)
    if dataset is None or not dataset.ann_file or 'classes' not in dataset.metainfo:
        return
    trains = not dataset.test_mode and loads(settings, 'LoadAnnotations')
    file = _read(read, dataset.ann_file, loader, labelled=trains)
    _check_classes(loader, dataset, file)
    images = _used_images(loader, dataset, file)
    if loads(settings, 'LoadImageFromFile'):
        _check_pictures(loader, dataset, subset(images, settings.get('indices')))


def check_coco_metric(evaluator: str, metric: dict, read: Callable[[str], CocoFile]) -> None:
    """Raise UsageError where the annotation file of a CocoMetric cannot be used.

    Args:
        evaluator: which evaluator of the config has the metric.
        metric: its config; other metrics are passed over.
        read: read_coco, or a cache of it.
    """
    from mmdet.evaluation import CocoMetric

    kind, path = registered(metric, 'METRICS', 'mmdet'), metric.get('ann_file')
    if kind is None or not issubclass(kind, CocoMetric):
        return
    if path and not is_remote(path) and not metric.get('backend_args'):
        _read(read, path, evaluator, labelled=not metric.get('format_only'))


def _reads_coco(kind: type) -> bool:
    from mmdet.datasets import CityscapesDataset, CocoDataset

    methods = ('load_data_list', 'parse_data_info', 'filter_data')
    return any(
        all(getattr(kind, name, None) is getattr(known, name) for name in methods)
        for known in (CocoDataset, CityscapesDataset)
    )


def _read(read: Callable[[str], CocoFile], path: str, part: str, labelled: bool) -> CocoFile:
    fault = f'the {part} of the config reads {path}, which'
    try:
        file = read(os.path.abspath(path))
    except ValueError as error:
        raise UsageError(f'{fault} {error}') from error
    if file.images_of is None and labelled:
        raise UsageError(f'{fault} has no annotations: name a file that has them in ann_file.')
    return file


def _check_classes(loader: str, dataset: BaseDataset, file: CocoFile) -> None:
    classes = dataset.metainfo['classes']
    if not _ids(file, classes):
        raise UsageError(
            f'the {loader} of the config looks for the classes {_shown(classes)}, none of which is '
            f'in {dataset.ann_file}, whose categories are {_shown(file.categories.values())}: copy '
            'these names into metainfo=dict(classes=...) of the dataset in the config.'
        )


def _ids(file: CocoFile, classes: Sequence[str]) -> list[int]:
    return [number for number, name in file.categories.items() if name in classes]


def _shown(names: Iterable[str]) -> str:
    names = [names] if isinstance(names, str) else list(names)
    more = [f'… ({len(names)} in all)'] if len(names) > 8 else []
    return f'({", ".join([*map(repr, names[: 5 if more else 8]), *more])})'


def _used_images(loader: str, dataset: BaseDataset, file: CocoFile) -> list[dict]:
    """Return the pictures that the dataset keeps by its ``filter_cfg``."""
    fault = f'the {loader} of the config reads {dataset.ann_file}, which'
    images = file.images
    if not images:
        raise UsageError(f'{fault} names no picture: name another file in ann_file.')
    if not all(image.keys() >= {'file_name', 'width', 'height'} for image in images):
        raise UsageError(f'{fault} lacks the file_name, width or height of a picture: add them.')
    rules = {} if dataset.test_mode else dataset.filter_cfg or {}
    if rules.get('filter_empty_gt'):
        ids = _ids(file, dataset.metainfo['classes'])
        kept = set().union(*((file.images_of or {}).get(number, ()) for number in ids))
        images = [image for image in images if image['id'] in kept]
    smallest = rules.get('min_size', 0)
    images = [image for image in images if min(image['width'], image['height']) >= smallest]
    if not images:
        raise UsageError(
            f'{fault} names {len(file.images)} pictures, of which filter_cfg={dict(rules)} leaves '
            "none: annotate them with the dataset's classes, or change filter_cfg in the config."
        )
    return images


def _check_pictures(loader: str, dataset: BaseDataset, images: list[dict]) -> None:
    folder = dataset.data_prefix.get('img', '')
    files = [os.path.join(folder, image['file_name']) for image in images]
    if missing := missing_files(files):
        raise UsageError(
            f'{len(missing)} of {len(files)} pictures that the {loader} of the config reads by '
            f'{dataset.ann_file} are not in {folder or os.curdir}, the first is {missing[0]}: put '
            'them there, or change data_prefix in the config.'
        )
