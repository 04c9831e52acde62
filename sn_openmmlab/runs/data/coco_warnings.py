"""Warnings of annotations that a detector can be trained on, but hardly as they are meant."""

from collections.abc import Sequence

from mmengine.dataset import BaseDataset

from sn_openmmlab.checkpoints.names import few
from sn_openmmlab.errors import warn_user
from sn_openmmlab.runs.data.coco import CocoSummary


def warn_of_annotations(loader: str, dataset: BaseDataset, file: CocoSummary) -> None:
    """Print a warning for each doubtful thing in an annotation file.

    Args:
        loader: the data loader that reads it.
        dataset: of MMDetection, with the ids of its categories.
        file: its annotation file.
    """
    for fault in [*_of_tables(dataset, file), *_of_objects(dataset, file)]:
        warn_user(f'{dataset.ann_file} of the {loader} {fault}.')


def _of_tables(dataset: BaseDataset, file: CocoSummary) -> list[str]:
    found = []
    names = list(file.categories.values())
    classes: Sequence[str] = dataset.metainfo['classes']
    if lost := [name for name in classes if name not in names]:
        found.append(f'has no category {few(lost)}, so nothing is learned of it')
    if twice := sorted({name for name in names if names.count(name) > 1}):
        found.append(f'has the category {few(twice)} more than once')
    if file.repeated:
        found.append(f'has {file.repeated} images with the id of another, which are not used')
    if file.images_of is None:
        return found
    known = {image['id'] for image in file.images}
    strangers = set().union(*file.images_of.values()) - known
    if strangers:
        found.append(f'has annotations of {len(strangers)} images that it does not list')
    if others := [number for number in file.images_of if number not in file.categories]:
        found.append(f'has annotations of categories that it does not list, such as {others[0]!r}')
    return found


def _of_objects(dataset: BaseDataset, file: CocoSummary) -> list[str]:
    found, faults = [], file.faults
    if faults.empty:
        found.append(
            f'has {faults.empty} of {faults.number} boxes without an area, which are left out'
        )
    if faults.flat:
        found.append(f'has {faults.flat} masks of polygons without three points')
    if images := faults.misplaced(file.images):
        found.append(
            f'has boxes outside or far beyond {len(images)} of {len(file.images)} images, such as '
            f'{images[0]}: perhaps its coordinates are for other sizes'
        )
    labelled = any((file.images_of or {}).get(number) for number in dataset.cat_ids)
    if not labelled or faults.number <= faults.empty + faults.crowds:
        found.append('has no object of the classes to train on or to find')
    return found
