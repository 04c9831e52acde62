"""The datasets of a data loader, from its config and from their toolbox."""

import os
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from mmengine.dataset import BaseDataset

from sn_openmmlab.config_tree import walk
from sn_openmmlab.errors import UsageError


def datasets_in(part: Any) -> Iterator[dict]:
    """Yield every dataset in ``part``, including those in wrappers such as ConcatDataset."""
    if isinstance(part, list | tuple):
        for item in part:
            yield from datasets_in(item)
    elif isinstance(part, dict):
        yield part
        yield from datasets_in(part.get('dataset'))
        yield from datasets_in(part.get('datasets'))


def named_paths(dataset: dict) -> Iterator[str]:
    """Yield the folders and files that a dataset names; none if a storage backend serves them."""
    if dataset.get('backend_args'):
        return
    root = dataset.get('data_root') or ''
    prefixes = dataset.get('data_prefix') or {}
    folders = prefixes.values() if isinstance(prefixes, dict) else [prefixes]
    for part in (root, dataset.get('ann_file'), *folders):
        if isinstance(part, str) and part:
            yield os.path.join(root, part) if part is not root else root


def is_remote(path: str) -> bool:
    """Return whether a path is the address of a remote storage."""
    return '://' in path


def registered(part: dict, registry: str, toolbox: str) -> type | None:
    """Return the class that ``part`` names as its ``type``, or None if it is unknown.

    Args:
        part: the config of one object.
        registry: the name of the registry that builds it, such as ``'DATASETS'``.
        toolbox: the package of that registry.
    """
    kind = part.get('type')
    if isinstance(kind, str):
        try:
            kind = getattr(import_module(f'{toolbox}.registry'), registry).get(kind)
        except RuntimeError:  # mmengine's error for a dotted name that it cannot import.
            return None
    return kind if isinstance(kind, type) else None


def open_dataset(kind: type[BaseDataset], settings: dict) -> BaseDataset | None:
    """Build a dataset without its pipeline, so that its class lists and filters its images.

    Args:
        kind: its class.
        settings: its config.

    Returns:
        The dataset. None if it cannot be built, which its toolbox will report, or if not all that
        it names is local.

    Raises:
        UsageError: ``kind`` raises one.
    """
    named = list(named_paths(settings))
    if not named or any(map(is_remote, named)):
        return None
    arguments = {key: settings[key] for key in settings if key not in ('type', '_scope_')}
    changes = dict(pipeline=[], serialize_data=False, lazy_init=False)
    try:
        return kind(**{**arguments, **changes})
    except UsageError:
        raise
    except Exception:
        return None


def class_names(dataset: dict, toolbox: str) -> Any:
    """Return the names of the classes of a dataset, by its config or its class; None if unknown.

    Args:
        dataset: the config of the dataset.
        toolbox: the package that has its class.
    """
    kind = registered(dataset, 'DATASETS', toolbox)
    own = getattr(kind, 'METAINFO', {}) if kind else {}
    metainfo = dataset.get('metainfo')
    given = metainfo if isinstance(metainfo, dict) else {}
    names = {**own, **given}
    # Of a panoptic data set, those that have boxes.
    return None if 'thing_classes' in names else names.get('classes')


def loads(dataset: dict, transform: str) -> bool:
    """Return whether a dataset's pipeline has this transform and it reads local files."""
    return any(
        transform in str(step.get('type')) and not step.get('backend_args')
        for _, step in walk(dataset.get('pipeline'))
    )
