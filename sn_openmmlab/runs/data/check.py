"""Checking that the data a config names is there, before anything is built."""

import os
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec

from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.data.coco_files import read_coco
from sn_openmmlab.runs.data.datasets import datasets_in, is_remote, named_paths
from sn_openmmlab.runs.data.detection import check_coco_metric, check_detection
from sn_openmmlab.runs.data.folders import has_file
from sn_openmmlab.runs.data.segmentation import check_segmentation


def check_data(config: Config, *loaders: str) -> None:
    """Raise UsageError where the data of a dataset or its metric are missing or half prepared.

    That is where a folder or file does not exist or is empty, where pictures or label maps are
    missing, and where an annotation file in COCO format is damaged or does not fit the classes. So
    it is where a metric of Cityscapes lacks the package that it measures with.

    Args:
        config: the config of the run.
        loaders: which data loaders the run will use, as in ``'train_dataloader'``; those that the
            config lacks are passed over, and so are data sets in a remote storage.
    """
    if config.get('default_scope') == 'mmpretrain':
        # Its data sets of research download themselves.
        return
    for loader in loaders:
        for dataset in _datasets(config, loader):
            for path in named_paths(dataset):
                _check_path(path, loader, 'data_root')
        for metric in _metrics(config, loader):
            _check_metric(metric, _evaluator(loader))
    _check_contents(config, *loaders)


def _datasets(config: Config, loader: str) -> Iterator[dict]:
    return datasets_in((config.get(loader) or {}).get('dataset'))


def _metrics(config: Config, loader: str) -> list[dict]:
    metrics = config.get(_evaluator(loader)) or []
    return metrics if isinstance(metrics, list | tuple) else [metrics]


def _evaluator(loader: str) -> str:
    return loader.replace('dataloader', 'evaluator')


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


def _check_contents(config: Config, *loaders: str) -> None:
    toolbox = config.get('default_scope')
    # Several loaders and metrics may name the same file, which takes seconds to read.
    read = cache(read_coco)
    for loader in loaders:
        if toolbox == 'mmseg':
            for dataset in _datasets(config, loader):
                check_segmentation(loader, dataset)
        if toolbox == 'mmdet':
            for dataset in _datasets(config, loader):
                check_detection(loader, dataset, read)
            for metric in _metrics(config, loader):
                check_coco_metric(_evaluator(loader), metric, read)
