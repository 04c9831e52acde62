"""The data sets of a loader, as its config gives them and as their toolbox reads them."""

import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from mmengine.dataset import BaseDataset


def datasets_in(part: Any) -> Iterator[dict]:
    """Yield every dataset in ``part``, also those inside wrappers such as ConcatDataset."""
    if isinstance(part, list | tuple):
        for item in part:
            yield from datasets_in(item)
    elif isinstance(part, dict):
        yield part
        yield from datasets_in(part.get('dataset'))
        yield from datasets_in(part.get('datasets'))


def named_paths(dataset: dict) -> Iterator[str]:
    """Yield the folders and files that a dataset names; none where a storage serves them."""
    if dataset.get('backend_args'):
        return
    root = dataset.get('data_root') or ''
    prefixes = dataset.get('data_prefix') or {}
    folders = prefixes.values() if isinstance(prefixes, dict) else [prefixes]
    for part in (root, dataset.get('ann_file'), *folders):
        if isinstance(part, str) and part:
            yield os.path.join(root, part) if part is not root else root


def is_remote(path: str) -> bool:
    """Whether a path is an address in a remote storage."""
    return '://' in path


def registered(part: dict, registry: str, toolbox: str) -> type | None:
    """Return the class that ``part`` names as its ``type``, or None where it is not known.

    Args:
        part: the config of one object.
        registry: the name of the registry that builds it, as in ``'DATASETS'``.
        toolbox: the package of that registry.
    """
    kind = part.get('type')
    if isinstance(kind, str):
        try:
            kind = getattr(import_module(f'{toolbox}.registry'), registry).get(kind)
        except RuntimeError:  # How mmengine says that it cannot import a dotted name.
            return None
    return kind if isinstance(kind, type) else None


def open_dataset(kind: type[BaseDataset], settings: dict, **changes: Any) -> BaseDataset | None:
    """Build a dataset without its pipeline.

    Args:
        kind: its class.
        settings: its config.
        changes: arguments in place of the config's.

    Returns:
        The dataset, or None where it cannot be built, which the toolbox will say itself, and where
        it names no local folder or file, or also remote ones.
    """
    named = list(named_paths(settings))
    if not named or any(map(is_remote, named)):
        return None
    arguments = {key: settings[key] for key in settings if key not in ('type', '_scope_')}
    try:
        return kind(**{**arguments, 'pipeline': [], **changes})
    except Exception:
        return None


def subset(items: list, indices: int | Sequence[int] | None) -> list:
    """Return those of a dataset's items that the ``indices`` in its config leave."""
    if indices is None:
        return items
    if isinstance(indices, int):
        return items[:indices] if indices >= 0 else items[indices:]
    return [items[i] for i in indices if -len(items) <= i < len(items)]


def loads(dataset: dict, transform: str) -> bool:
    """Whether the pipeline of a dataset has a transform of that name which reads local files."""
    return any(
        transform in str(step['type']) and not step.get('backend_args')
        for step in _steps(dataset.get('pipeline'))
    )


def _steps(part: Any) -> Iterator[dict]:
    """Every transform in ``part``, also those inside others such as TestTimeAug."""
    if isinstance(part, list | tuple):
        for item in part:
            yield from _steps(item)
    elif isinstance(part, dict):
        if 'type' in part:
            yield part
        yield from _steps(list(part.values()))
