"""A summary of an annotation file in COCO format."""

import json
from collections import defaultdict
from dataclasses import dataclass, field

from sn_openmmlab.runs.data.coco_faults import AnnotationFaults


@dataclass(frozen=True)
class CocoSummary:
    """The tables of an annotation file, without the annotations themselves.

    Attributes:
        images: the table of images: id, file_name, width and height.
        categories: the name of each category, by its id.
        images_of: the ids of the images that have annotations of a category, by its id; None if
            the file has no table of annotations.
        faults: what is wrong with annotations.
        repeated: how many images have the id of another one, which takes their place.
    """

    images: list[dict]
    categories: dict[int, str]
    images_of: dict[int, set[int]] | None
    faults: AnnotationFaults = field(default_factory=AnnotationFaults)
    repeated: int = 0


def read_coco(path: str) -> CocoSummary:
    """Summarize an annotation file.

    Each annotation is dropped as soon as it is parsed, which saves most of the memory and time
    that pycocotools takes on a large file.

    Raises:
        ValueError: the file is damaged or in another format; the message describes the file.
    """
    images_of: dict[int, set[int]] = defaultdict(set)
    faults = AnnotationFaults()

    def summarize(item: dict) -> dict | None:
        if 'image_id' in item and 'category_id' in item:
            images_of[item['category_id']].add(item['image_id'])
            faults.look_at(item)
            return None
        if 'file_name' in item:
            return {k: item[k] for k in ('id', 'file_name', 'width', 'height') if k in item}
        return item

    try:
        with open(path) as file:
            table = json.load(file, object_hook=summarize)
        if any(table.get('annotations', [])):
            raise TypeError('an annotation without image_id or category_id')
        images = list({image['id']: image for image in table['images']}.values())
        return CocoSummary(
            images=images,
            categories={category['id']: category['name'] for category in table['categories']},
            images_of=images_of if 'annotations' in table else None,
            faults=faults,
            repeated=len(table['images']) - len(images),
        )
    except OSError as error:
        raise ValueError(f'cannot be read ({error.strerror}): change ann_file.') from error
    except (ValueError, RecursionError) as error:
        raise ValueError(
            'is empty, cut off or damaged: unpack, download or write it again.'
        ) from error
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(
            'is not in COCO format, which has images, annotations and categories: convert it, or '
            'name another file in ann_file.'
        ) from error
