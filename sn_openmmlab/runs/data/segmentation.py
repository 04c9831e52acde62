"""Checking that a data set of MMSegmentation has pictures, and a label map for each."""

import os
from pathlib import Path

from mmengine.dataset import BaseDataset

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.data.datasets import loads, open_dataset, registered, subset
from sn_openmmlab.runs.data.folders import missing_files


def check_segmentation(loader: str, settings: dict) -> None:
    """Raise UsageError where a dataset has no picture, or lacks pictures or label maps.

    Args:
        loader: which data loader reads it.
        settings: its config; what is not a BaseSegDataset is passed over.
    """
    from mmseg.datasets import BaseSegDataset

    kind = registered(settings, 'DATASETS', 'mmseg')
    if kind is None or not issubclass(kind, BaseSegDataset):
        return
    dataset = open_dataset(kind, settings, serialize_data=False, lazy_init=False, indices=None)
    if dataset is None:
        return
    if not dataset.data_list:
        raise UsageError(f'the {loader} of the config {_no_picture(dataset)}')
    items = subset(dataset.data_list, settings.get('indices'))
    if loads(settings, 'LoadImageFromFile'):
        _check_files(
            [item['img_path'] for item in items if 'img_path' in item],
            f'pictures that the {loader} of the config reads do not exist',
            'put them there, or change data_prefix or img_suffix in the config.',
        )
    if loads(settings, 'LoadAnnotations'):
        _check_files(
            [item['seg_map_path'] for item in items if 'seg_map_path' in item],
            f'pictures that the {loader} of the config reads lack their label map',
            'put them there, or change data_prefix or seg_map_suffix in the config.',
        )


def _no_picture(dataset: BaseDataset) -> str:
    if dataset.ann_file and os.path.isfile(dataset.ann_file):
        return (
            f'reads {dataset.ann_file}, which names no picture: write their names there, one a '
            'line, or change ann_file in the config.'
        )
    return (
        f'finds no picture: no file in or below {dataset.data_prefix.get("img_path")} ends in '
        f'{dataset.img_suffix}; put the data there, or change data_prefix or img_suffix in the '
        'config.'
    )


def _check_files(files: list[str], fault: str, remedy: str) -> None:
    if missing := missing_files(files):
        raise UsageError(
            f'{len(missing)} of {len(files)} {fault}, the first is {missing[0]}: '
            f'{_conversion(missing[0]) or remedy}'
        )


def _conversion(label_map: str) -> str | None:
    """How to make a label map of Cityscapes, where only what it is made from is there."""
    root, folder, _ = label_map.rpartition('/gtFine/')
    stem = label_map.removesuffix('_labelTrainIds.png')
    sources = (f'{stem}_polygons.json', f'{stem}_labelIds.png')
    if not folder or stem == label_map or not any(map(os.path.exists, sources)):
        return None
    import mmseg

    converter = Path(mmseg.__file__).parent / '.mim/tools/dataset_converters/cityscapes.py'
    return (
        "MMSegmentation's converter makes the label maps with train ids from the polygons: pip "
        f'install cityscapesscripts, then python {converter} {root}'
    )
