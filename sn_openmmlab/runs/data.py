"""Checking that the data a config names is there, before anything is built."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from mmengine.config import Config

from sn_openmmlab.errors import UsageError


def check_data(config: Config, *loaders: str) -> None:
    """Raise UsageError where a folder or annotation file of a dataset or its metric is missing.

    So it is where a metric of Cityscapes lacks the package that it measures with.

    Args:
        config: the config of the run.
        loaders: which data loaders the run will use, as in ``'train_dataloader'``; those that the
            config lacks are passed over, and so are data sets in a remote storage.
    """
    if (
        config.get('default_scope') == 'mmpretrain'
    ):  # Its data sets of research download themselves.
        return
    for loader in loaders:
        for dataset in _datasets((config.get(loader) or {}).get('dataset')):
            for path in _paths(dataset):
                if not _is_there(path):
                    raise UsageError(
                        f'the {loader} of the config reads {path}, which does not exist: put or '
                        'link the data there, or change data_root in the config.'
                    )
        _check_metrics(config, loader.replace('dataloader', 'evaluator'))


def _check_metrics(config: Config, evaluator: str) -> None:
    metrics = config.get(evaluator) or []
    for metric in metrics if isinstance(metrics, list | tuple) else [metrics]:
        for key in ('ann_file', 'seg_prefix'):
            path = metric.get(key)
            if path and not metric.get('backend_args') and not _is_there(path):
                raise UsageError(
                    f'the {evaluator} of the config reads {path}, which does not exist: put or '
                    f'link the data there, or change its {key} in the config.'
                )
        cityscapes = metric.get('type') in ('CityScapesMetric', 'CityscapesMetric')
        if cityscapes and find_spec('cityscapesscripts') is None:
            raise UsageError(
                f'the {evaluator} of the config needs cityscapesscripts, which is not installed '
                'here: pip install cityscapesscripts.'
            )


def _is_there(path: str) -> bool:
    return '://' in path or os.path.exists(path)


def _datasets(part: Any) -> Iterator[dict]:
    """Every dataset in ``part``, also those inside wrappers such as ConcatDataset."""
    if isinstance(part, list | tuple):
        for item in part:
            yield from _datasets(item)
    elif isinstance(part, dict):
        yield part
        yield from _datasets(part.get('dataset'))
        yield from _datasets(part.get('datasets'))


def _paths(dataset: dict) -> Iterator[str]:
    if dataset.get('backend_args'):
        return
    root = dataset.get('data_root') or ''
    prefixes = dataset.get('data_prefix') or {}
    folders = prefixes.values() if isinstance(prefixes, dict) else [prefixes]
    for part in (root, dataset.get('ann_file'), *folders):
        if isinstance(part, str) and part:
            yield os.path.join(root, part) if part is not root else root
