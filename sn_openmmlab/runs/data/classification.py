"""The check that a dataset of MMPretrain has images, and labels that fit the head."""

import inspect
import os
from collections.abc import Mapping, Sequence
from typing import Any

from mmengine.dataset import BaseDataset

from sn_openmmlab.checkpoints.names import few
from sn_openmmlab.config_tree import walk
from sn_openmmlab.errors import UsageError, warn_user
from sn_openmmlab.runs.data.datasets import loads, open_dataset, registered
from sn_openmmlab.runs.data.folders import missing_files


def downloads_itself(settings: dict) -> bool:
    """Return whether MMPretrain downloads a dataset that is not there, as it does CIFAR-10."""
    kind = registered(settings, 'DATASETS', 'mmpretrain')
    can = kind is not None and 'download' in inspect.signature(kind).parameters
    return can and settings.get('download', True)


def check_classification(
    loader: str, settings: dict, model: Mapping[str, Any] | None
) -> Sequence[str] | None:
    """Raise UsageError if a dataset has no images or other classes than the head of the model.

    Args:
        loader: the data loader that reads the dataset.
        settings: the config of the dataset; a class other than a CustomDataset, such as ImageNet,
            is skipped.
        model: the config of the model, if there is one.

    Returns:
        The names of the classes, if they are those of folders.
    """
    from mmpretrain.datasets import CustomDataset

    kind = registered(settings, 'DATASETS', 'mmpretrain')
    if kind is None or not issubclass(kind, CustomDataset):
        return None

    def load_data_list(dataset: CustomDataset) -> list[dict]:
        if not dataset.ann_file:
            _check_folders(loader, dataset)
        return _load(loader, kind, dataset)

    checked = type(kind.__name__, (kind,), {'load_data_list': load_data_list})
    dataset = open_dataset(checked, {**settings, 'indices': None})
    if dataset is None:
        return None
    _check_number(loader, dataset, settings.get('indices'))
    if dataset.ann_file and loads(settings, 'LoadImageFromFile'):
        _check_images(loader, dataset)
    if dataset.with_label:
        _check_classes(loader, dataset, dict(_heads(model)))
        _warn_of_one_class(loader, dataset)
    return None if dataset.ann_file or not dataset.with_label else dataset.CLASSES


def _check_folders(loader: str, dataset: BaseDataset) -> None:
    """Check the folders of a dataset that has no annotation file."""
    from mmpretrain.datasets.custom import find_folders

    folder = dataset.img_prefix
    fault = f'the {loader} of the config reads {folder}, which'
    names = find_folders(folder)[0] if dataset.with_label else ['']
    if not names:
        raise UsageError(
            f'{fault} has no folders of classes: put the images of each class into a folder of its '
            'own, as in CLASS/0.jpg, or name a file of labels in ann_file.'
        )
    if dataset.with_label and dataset.CLASSES is not None and len(dataset.CLASSES) != len(names):
        raise UsageError(
            f'{fault} has {_counted(names, "folder")}, but its dataset has '
            f'{len(dataset.CLASSES)} classes: put all of them there, or use the type CustomDataset '
            'with their names in metainfo=dict(classes=...).'
        )
    if not any(_has_image(os.path.join(folder, name), dataset) for name in names):
        raise UsageError(
            f'{fault} has no images: no file in or below {few(names)} ends in '
            f'{few(sorted(dataset.extensions), 8)}; put the images there, or change data_prefix or '
            'extensions in the config.'
        )


def _has_image(folder: str, dataset: BaseDataset) -> bool:
    files = (name for _, _, names in os.walk(folder, followlinks=True) for name in names)
    return any(map(dataset.is_valid_file, files))


def _load(loader: str, kind: type[BaseDataset], dataset: BaseDataset) -> list[dict]:
    try:
        return kind.load_data_list(dataset)
    except ValueError as error:
        raise UsageError(
            f'the {loader} of the config reads {dataset.ann_file}, of which each line must name an '
            'image and the number of its class, as in dogs/1.jpg 3: correct the file, or name '
            'another in ann_file.'
        ) from error


def _check_number(loader: str, dataset: BaseDataset, indices: int | Sequence[int] | None) -> None:
    """Check that there are images, and all those that indices choose."""
    number, fault = len(dataset.data_list), f'the {loader} of the config reads {_source(dataset)}'
    if not number:
        raise UsageError(f'{fault}, which lists no images: name another file in ann_file.')
    last = max(indices, default=-1) if isinstance(indices, Sequence) else (indices or 0) - 1
    if last >= number:
        raise UsageError(
            f'{fault}, which has {number} images, but its indices choose image {last}: set indices '
            'of the dataset to None in the config for all images.'
        )


def _source(dataset: BaseDataset) -> str:
    return dataset.ann_file or dataset.img_prefix


def _check_images(loader: str, dataset: BaseDataset) -> None:
    files = [item['img_path'] for item in dataset.data_list]
    if missing := missing_files(files):
        raise UsageError(
            f'{len(missing)} of {len(files)} images that the {loader} of the config reads by '
            f'{dataset.ann_file} do not exist, the first is {missing[0]}: put them there, or '
            'change data_prefix in the config.'
        )


def _heads(model: Any) -> Any:
    """Yield the place and the number of classes of each head of a model."""
    for place, part in walk(model, 'model'):
        if place.endswith('.head') and isinstance(part.get('num_classes'), int):
            yield place, part['num_classes']


def _check_classes(loader: str, dataset: BaseDataset, heads: Mapping[str, int]) -> None:
    classes: Sequence[str] | None = dataset.CLASSES
    highest = max(item['gt_label'] for item in dataset.data_list)
    number = len(classes) if classes else highest + 1
    for place, outputs in heads.items():
        # Without names of the classes, those of the highest numbers may have no image.
        if highest >= outputs or (classes and number != outputs):
            raise UsageError(
                f'{place}.num_classes is {outputs}, but the {loader} of the config reads '
                f'{_source(dataset)}, which has {number} classes: set '
                f'{place}.num_classes={number}, or give it the data of the other classes.'
            )


def _warn_of_one_class(loader: str, dataset: BaseDataset) -> None:
    labels = {item['gt_label'] for item in dataset.data_list}
    if len(labels) == 1 and len(dataset.data_list) > 1:
        warn_user(
            f'all {len(dataset.data_list)} images of the {loader} have the same class, '
            f'{labels.pop()}.'
        )


def check_same_classes(found: Mapping[str, Sequence[str]]) -> None:
    """Raise UsageError if the loaders have other classes, of which MMPretrain uses the numbers.

    Args:
        found: by loader, the names of the folders of classes.
    """
    loaders = list(found)
    for loader in loaders[1:]:
        first = loaders[0]
        if list(found[loader]) != list(found[first]):
            raise UsageError(
                f'the {first} of the config reads folders of the classes {few(found[first], 8)}, '
                f'but the {loader} those of {few(found[loader], 8)}: give both the same folders, '
                'empty ones too.'
            )


def _counted(names: Sequence[str], noun: str) -> str:
    return f'{len(names)} {noun}{"" if len(names) == 1 else "s"} ({few(names)})'
