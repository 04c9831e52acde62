"""Reading what the checks need of annotation files in COCO format."""

import gc
import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CocoFile:
    """The tables of an annotation file, without the annotations themselves.

    Attributes:
        images: the table of pictures.
        categories: the name of each category, by its id.
        images_of: the ids of the pictures that have annotations of a category, by its id; None
            where the file has no table of annotations.
    """

    images: list[dict]
    categories: dict[int, str]
    images_of: dict[int, set[int]] | None


def read_coco(path: str) -> CocoFile:
    """Read an annotation file.

    Raises:
        ValueError: it is damaged or in another format; the message says so of the file.
    """
    try:
        table = _load(path)
    except OSError as error:
        raise ValueError(f'cannot be read ({error.strerror}): change ann_file.') from error
    except (ValueError, RecursionError) as error:
        raise ValueError(
            'is empty, cut off or damaged: unpack, download or write it again.'
        ) from error
    try:
        return _summary(table)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(
            "is not in COCO's format, which has images, annotations and categories: convert it, "
            'or name another file in ann_file.'
        ) from error


def _load(path: str) -> Any:
    # Millions of new lists set off the collector again and again, half of the time of reading.
    collects = gc.isenabled()
    gc.disable()
    try:
        with open(path) as file:
            return json.load(file)
    finally:
        if collects:
            gc.enable()


def _summary(table: dict) -> CocoFile:
    images_of: dict[int, set[int]] = {}
    for annotation in table.get('annotations', []):
        images_of.setdefault(annotation['category_id'], set()).add(annotation['image_id'])
    return CocoFile(
        images=list({image['id']: image for image in table['images']}.values()),
        categories={category['id']: category['name'] for category in table['categories']},
        images_of=images_of if 'annotations' in table else None,
    )
