"""The check that the data of a config are there, before anything is built."""

import os
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec

from mmengine.config import Config

from sn_openmmlab.config_tree import walk
from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.data.class_numbers import check_class_numbers
from sn_openmmlab.runs.data.classification import (
    check_classification,
    check_same_classes,
    downloads_itself,
)
from sn_openmmlab.runs.data.coco import read_coco
from sn_openmmlab.runs.data.datasets import class_names, datasets_in, is_remote, named_paths
from sn_openmmlab.runs.data.detection import check_coco_metric, check_detection
from sn_openmmlab.runs.data.folders import has_file
from sn_openmmlab.runs.data.segmentation import check_segmentation
from sn_openmmlab.runs.settings import check_settings


def check_data(config: Config, *loaders: str) -> None:
    """Raise UsageError if the data of a dataset or a metric are missing or incomplete.

    It finds settings of loaders, loops and schedules that cannot be meant. It finds missing or
    empty files and folders, missing images or label maps, and values in label maps that are not
    classes. It finds annotation files in COCO format that are damaged or do not fit the classes,
    and heads with another number of classes than their data. It also finds a Cityscapes metric
    without the package that it needs. What is only doubtful gives a warning on stderr.

    Args:
        config: the config of the run.
        loaders: the data loaders that the run uses, such as ``'train_dataloader'``. A loader that
            the config lacks and datasets in remote storage are skipped.
    """
    check_settings(config, *loaders)
    toolbox = config.get('default_scope')
    # Several datasets and metrics may share a file, which takes seconds to read.
    read = cache(read_coco)
    parts = [(loader, loader.replace('dataloader', 'evaluator')) for loader in loaders]
    datasets = [(x, d) for x, _ in parts for d in datasets_in((config.get(x) or {}).get('dataset'))]
    metrics = [(x, metric) for _, x in parts for metric in _as_list(config.get(x))]
    if toolbox == 'mmpretrain':
        datasets = [(x, dataset) for x, dataset in datasets if not downloads_itself(dataset)]
    for loader, dataset in datasets:
        for path in named_paths(dataset):
            _check_path(path, loader, 'data_root')
    for evaluator, metric in metrics:
        _check_metric(metric, evaluator)
    ignored = {255, *(part.get('ignore_index') for _, part in walk(dict(config.items())))}
    folders: dict[str, Sequence[str]] = {}
    for loader, dataset in datasets:
        if toolbox == 'mmseg':
            check_segmentation(loader, dataset, ignored)
        if toolbox == 'mmdet':
            check_detection(loader, dataset, read)
        if toolbox == 'mmpretrain':
            names = check_classification(loader, dataset, config.get('model'))
            folders.update({loader: names} if names else {})
    check_same_classes(folders)
    for loader, dataset in datasets:
        if loader == 'train_dataloader' and toolbox in ('mmdet', 'mmseg'):
            classes = class_names(dataset, toolbox)
            check_class_numbers(toolbox, loader, classes, config.get('model'))
    for evaluator, metric in metrics:
        if toolbox == 'mmdet':
            check_coco_metric(evaluator, metric, read)


def _as_list(metrics: dict | list[dict] | None) -> list[dict]:
    return list(metrics) if isinstance(metrics, list | tuple) else [metrics] if metrics else []


def _check_path(path: str, part: str, key: str) -> None:
    if is_remote(path):
        return
    if not os.path.exists(path):
        fault = 'does not exist'
    elif os.path.isdir(path) and not has_file(path):
        fault = 'is a folder without any file'
    else:
        return
    raise UsageError(
        f'the {part} of the config reads {path}, which {fault}: put or link the data there, or '
        f'change {key} in the config.'
    )


def _check_metric(metric: dict, evaluator: str) -> None:
    for key in ('ann_file', 'seg_prefix'):
        if metric.get(key) and not metric.get('backend_args'):
            _check_path(metric[key], evaluator, f'its {key}')
    cityscapes = metric.get('type') in ('CityScapesMetric', 'CityscapesMetric')
    if cityscapes and find_spec('cityscapesscripts') is None:
        raise UsageError(
            f'the {evaluator} of the config needs cityscapesscripts, which is not installed '
            'here: pip install cityscapesscripts.'
        )
