"""The check that a COCO dataset of MMDetection is complete and has the classes of the config."""

import math
import os
from collections.abc import Callable, Iterable
from numbers import Real

from mmengine.dataset import BaseDataset

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.data.coco import CocoSummary
from sn_openmmlab.runs.data.coco_warnings import warn_of_annotations
from sn_openmmlab.runs.data.datasets import is_remote, loads, open_dataset, registered
from sn_openmmlab.runs.data.folders import missing_files

_SIDES = ('width', 'height')


def check_detection(loader: str, settings: dict, read: Callable[[str], CocoSummary]) -> None:
    """Raise UsageError if a dataset's annotation file is unusable, or if images are missing.

    Args:
        loader: the data loader that reads the dataset.
        settings: the config of the dataset. A class that does not load as CocoDataset does is
            skipped.
        read: `read_coco`, or a cache of it.
    """
    kind = registered(settings, 'DATASETS', 'mmdet')
    if kind is None or not _loads_as_coco(kind):
        return

    def load_data_list(dataset: BaseDataset) -> list[dict]:
        labelled = not dataset.test_mode and loads(settings, 'LoadAnnotations')
        file = _read(read, dataset.ann_file, loader, labelled)
        images = _list_images(loader, dataset, file)
        if labelled or dataset.test_mode:
            warn_of_annotations(loader, dataset, file)
        return images

    # Its own way of loading would index every annotation.
    light = type(kind.__name__, (kind,), {'load_data_list': load_data_list})
    dataset = open_dataset(light, settings)
    if dataset is None:
        return
    if not dataset.data_list:
        raise UsageError(
            f'the {loader} of the config reads {dataset.ann_file}, but '
            f'filter_cfg={dict(dataset.filter_cfg or {})} leaves none of its images: annotate them '
            "with the dataset's classes, or change filter_cfg in the config."
        )
    if loads(settings, 'LoadImageFromFile'):
        _check_images(loader, dataset)


def check_coco_metric(evaluator: str, metric: dict, read: Callable[[str], CocoSummary]) -> None:
    """Raise UsageError if the annotation file of a CocoMetric cannot be used.

    Args:
        evaluator: the evaluator of the config that has the metric.
        metric: the config of the metric; other metrics are skipped.
        read: `read_coco`, or a cache of it.
    """
    from mmdet.evaluation import CocoMetric

    kind, path = registered(metric, 'METRICS', 'mmdet'), metric.get('ann_file')
    if kind is None or not issubclass(kind, CocoMetric):
        return
    if path and not is_remote(path) and not metric.get('backend_args'):
        _read(read, path, evaluator, labelled=not metric.get('format_only'))


def _loads_as_coco(kind: type) -> bool:
    from mmdet.datasets import CocoDataset

    own = ('load_data_list', 'COCOAPI')
    return all(getattr(kind, name, None) is getattr(CocoDataset, name) for name in own)


def _read(read: Callable[[str], CocoSummary], path: str, part: str, labelled: bool) -> CocoSummary:
    fault = f'the {part} of the config reads {path}, which'
    try:
        file = read(os.path.abspath(path))
    except ValueError as error:
        raise UsageError(f'{fault} {error}') from error
    if file.images_of is None and labelled:
        raise UsageError(f'{fault} has no annotations: name a file that has them in ann_file.')
    if file.faults.broken and labelled:
        raise UsageError(
            f'{fault} cannot be used, since {file.faults.broken}: correct or remove it there.'
        )
    return file


def _list_images(loader: str, dataset: BaseDataset, file: CocoSummary) -> list[dict]:
    """List the images as the dataset would, and set what its filter looks at."""
    fault = f'the {loader} of the config reads {dataset.ann_file}, which'
    classes = dataset.metainfo['classes']
    dataset.cat_ids = [number for number, name in file.categories.items() if name in classes]
    if not dataset.cat_ids:
        raise UsageError(
            f'the {loader} of the config expects the classes {_shown(classes)}, but the categories '
            f'of {dataset.ann_file} are {_shown(file.categories.values())}: copy these names into '
            'metainfo=dict(classes=...) of the dataset in the config.'
        )
    if not file.images:
        raise UsageError(f'{fault} lists no images: name another file in ann_file.')
    if not all(image.keys() >= {'file_name', 'width', 'height'} for image in file.images):
        raise UsageError(
            f'{fault} has an image without file_name, width or height: add what is missing.'
        )
    for image in file.images:
        if not all(isinstance(image[side], Real) and 0 < image[side] < math.inf for side in _SIDES):
            raise UsageError(
                f'{fault} has {image["file_name"]} of {image["width"]!r} × {image["height"]!r} '
                'pixels: write its real width and height there.'
            )
    dataset.cat_img_map = {i: (file.images_of or {}).get(i, ()) for i in dataset.cat_ids}
    # Cityscapes' filter drops images of which all annotations are crowds.
    return [
        dataset.parse_data_info(
            dict(raw_img_info={**image, 'img_id': image['id']}, raw_ann_info=[])
        )
        | dict(instances=[dict(ignore_flag=0)])
        for image in file.images
    ]


def _shown(names: Iterable[str]) -> str:
    names = [names] if isinstance(names, str) else list(names)
    more = [f'… ({len(names)} in all)'] if len(names) > 8 else []
    shown = ', '.join([*map(repr, names[: 5 if more else 8]), *more])
    return f'({shown},)' if len(names) == 1 else f'({shown})'


def _check_images(loader: str, dataset: BaseDataset) -> None:
    files = [image['img_path'] for image in dataset.data_list]
    if missing := missing_files(files):
        folder = dataset.data_prefix.get('img') or os.curdir
        raise UsageError(
            f'{len(missing)} of {len(files)} images that the {loader} of the config reads by '
            f'{dataset.ann_file} are not in {folder}, the first is {missing[0]}: put them there, '
            'or change data_prefix in the config.'
        )
