"""The check that a dataset of MMSegmentation has images, and a label map for each."""

import os
from collections.abc import Collection
from pathlib import Path

from mmengine.dataset import BaseDataset

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.data.datasets import loads, open_dataset, registered
from sn_openmmlab.runs.data.folders import missing_files
from sn_openmmlab.runs.data.label_values import check_label_values


def check_segmentation(loader: str, settings: dict, ignored: Collection[int]) -> None:
    """Raise UsageError if a dataset has no image, or if images or label maps are missing or wrong.

    Args:
        loader: the data loader that reads the dataset.
        settings: the config of the dataset; a class other than a BaseSegDataset is skipped.
        ignored: the values of pixels without a class.
    """
    from mmseg.datasets import BaseSegDataset

    kind = registered(settings, 'DATASETS', 'mmseg')
    if kind is None or not issubclass(kind, BaseSegDataset):
        return
    dataset = open_dataset(kind, settings)
    if dataset is None:
        return
    if not dataset.data_list:
        raise UsageError(f'the {loader} of the config {_no_image(dataset)}')
    for transform, key, fault in (
        ('LoadImageFromFile', 'img', 'do not exist'),
        ('LoadAnnotations', 'seg_map', 'have no label map'),
    ):
        if loads(settings, transform):
            files = [item[f'{key}_path'] for item in dataset.data_list if f'{key}_path' in item]
            fault = f'images that the {loader} of the config reads {fault}'
            _check_files(files, fault, f'change data_prefix or {key}_suffix in the config.')
    if loads(settings, 'LoadAnnotations'):
        check_label_values(loader, settings, dataset, ignored)


def _no_image(dataset: BaseDataset) -> str:
    if dataset.ann_file and os.path.isfile(dataset.ann_file):
        return (
            f'reads {dataset.ann_file}, which lists no images: write their names there, one a '
            'line, or change ann_file in the config.'
        )
    return (
        f'finds no images: no file in or below {dataset.data_prefix.get("img_path")} ends in '
        f'{dataset.img_suffix}; put the data there, or change data_prefix or img_suffix in the '
        'config.'
    )


def _check_files(files: list[str], fault: str, change: str) -> None:
    if missing := missing_files(files):
        remedy = _conversion(missing[0]) or f'put them there, or {change}'
        raise UsageError(
            f'{len(missing)} of {len(files)} {fault}, the first is {missing[0]}: {remedy}'
        )


def _conversion(label_map: str) -> str | None:
    """Return how to make a label map of Cityscapes, if only its source is there."""
    root, folder, _ = label_map.rpartition('/gtFine/')
    stem = label_map.removesuffix('_labelTrainIds.png')
    sources = (f'{stem}_polygons.json', f'{stem}_labelIds.png')
    if not folder or stem == label_map or not any(map(os.path.exists, sources)):
        return None
    import mmseg

    converter = Path(mmseg.__file__).parent / '.mim/tools/dataset_converters/cityscapes.py'
    return (
        "make the label maps with MMSegmentation's converter: pip install cityscapesscripts, then "
        f'python {converter} {root}'
    )
