"""Checking that the data a config names is there, before anything is built."""

import os
from collections.abc import Iterator
from typing import Any

from mmengine.config import Config

from sn_openmmlab.errors import UsageError


def check_data(config: Config, *loaders: str) -> None:
    """Raise UsageError where a folder or annotation file of a dataset is missing.

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
                if '://' not in path and not os.path.exists(path):
                    raise UsageError(
                        f'the {loader} of the config reads {path}, which does not exist: put or '
                        'link the data there, or change data_root in the config.'
                    )


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
