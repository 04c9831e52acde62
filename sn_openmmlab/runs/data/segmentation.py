"""The check that a dataset of MMSegmentation has images, and a label map for each."""

import os
from collections.abc import Collection, Iterable, Mapping
from numbers import Integral
from pathlib import Path
from shlex import quote
from typing import Any

from mmengine.dataset import BaseDataset

from sn_openmmlab.errors import UsageError, warn_user
from sn_openmmlab.runs.data.datasets import loads, open_dataset, registered
from sn_openmmlab.runs.data.folders import missing_files, names_in
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
        _check_palette(loader, settings.get('metainfo'))
        return
    _check_palette(loader, dataset.metainfo)
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
        _warn_of_spare_maps(loader, dataset)
        check_label_values(loader, settings, dataset, ignored)


def _check_palette(loader: str, metainfo: Mapping[str, Any] | None) -> None:
    """Check that each class has a colour."""
    classes, palette = (metainfo or {}).get('classes'), (metainfo or {}).get('palette')
    # Without one, MMSegmentation draws colours at random.
    if not classes or palette is None or len(palette) == 0:
        return
    if len(palette) != len(classes) or not all(map(_is_colour, palette)):
        raise UsageError(
            f'the palette of the {loader} must have a colour for each of the {len(classes)} '
            'classes, three whole numbers from 0 to 255: correct palette in metainfo of the '
            'dataset in the config.'
        )


def _is_colour(value: Any) -> bool:
    numbers = list(value) if isinstance(value, Iterable) else []
    return len(numbers) == 3 and all(isinstance(x, Integral) and 0 <= x <= 255 for x in numbers)


def _warn_of_spare_maps(loader: str, dataset: BaseDataset) -> None:
    """Warn of label maps without an image, where the images are those of a folder."""
    folder = dataset.data_prefix.get('seg_map_path')
    if not folder or (dataset.ann_file and os.path.isfile(dataset.ann_file)):
        return
    used = {item.get('seg_map_path') for item in dataset.data_list}
    found = [os.path.join(folder, name) for name in sorted(names_in(folder))]
    spare = [file for file in found if file.endswith(dataset.seg_map_suffix) and file not in used]
    if spare:
        warn_user(
            f'{len(spare)} label maps in {folder} of the {loader} have no image and are not used, '
            f'the first is {spare[0]}.'
        )


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
        f'python {quote(str(converter))} {quote(root)}'
    )
