"""What is wrong in the annotations of a file in COCO format, found one annotation at a time."""

import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

# No image has so many pixels in a row, and rasterizing a polygon of that size fills the memory.
_FAR = 1e6
# `json` reads them, although JSON has none.
_NO_NUMBER = 'a number that is NaN or infinite'


class AnnotationFaults:
    """The faults of the annotations of a file; each annotation is looked at and let go.

    Attributes:
        broken: what is wrong with the first annotation that cannot be used, for a message; ''.
        empty: how many boxes have no area, which MMDetection leaves out.
        flat: how many masks are polygons without an area, which MMDetection leaves out.
        crowds: how many annotations are crowds, which MMDetection does not train on.
        number: how many annotations there are.
        extents: of each image, by its id, the least and greatest (left, top, right, bottom) of its
            boxes: the greatest left and top, the least right and bottom, then the outer ones.
    """

    def __init__(self) -> None:
        self.broken = ''
        self.empty = self.flat = self.crowds = self.number = 0
        self.extents: dict[Any, list[float]] = {}

    def look_at(self, annotation: Mapping[str, Any]) -> None:
        """Look at an annotation, right after it was read."""
        self.number += 1
        if fault := _fault(annotation):
            self.broken = self.broken or f'annotation {annotation.get("id")!r} has {fault}'
            return
        self.flat += _is_flat(annotation.get('segmentation'))
        x, y, w, h = annotation.get('bbox', (0, 0, 1, 1))
        if w <= 0 or h <= 0 or annotation.get('area', 1) <= 0:
            self.empty += 1
            return
        self.crowds += bool(annotation.get('iscrowd'))
        self._add(annotation['image_id'], x, y, x + w, y + h)

    def _add(self, image: Any, left: float, top: float, right: float, bottom: float) -> None:
        known = self.extents.get(image)
        if known is None:
            self.extents[image] = [left, top, right, bottom, left, top, right, bottom]
            return
        for i, value in enumerate((left, top)):
            known[i] = max(known[i], value)
            known[i + 4] = min(known[i + 4], value)
        for i, value in enumerate((right, bottom), 2):
            known[i] = min(known[i], value)
            known[i + 4] = max(known[i + 4], value)

    def misplaced(self, images: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return the names of the images that have a box outside of them, or far out of them."""
        return [image['file_name'] for image in images if self._is_misplaced(image)]

    def _is_misplaced(self, image: Mapping[str, Any]) -> bool:
        extent = self.extents.get(image['id'])
        if extent is None:
            return False
        w, h = image['width'], image['height']
        left, top, right, bottom, outer_left, outer_top, outer_right, outer_bottom = extent
        outside = left >= w or top >= h or right <= 0 or bottom <= 0
        far = outer_left < -w or outer_top < -h or outer_right > 2 * w or outer_bottom > 2 * h
        return outside or far


def _fault(annotation: Mapping[str, Any]) -> str:
    """Return what makes an annotation of no use, or ''."""
    box = annotation.get('bbox')
    if 'bbox' in annotation and not _are_numbers(box, 4):
        return f'the bbox {box!r}, which is not four numbers'
    if not all(map(math.isfinite, box or ())):
        return _NO_NUMBER
    area = annotation.get('area', 0)
    if not isinstance(area, Real):
        return f'the area {area!r}, which is no number'
    if not math.isfinite(area):
        return _NO_NUMBER
    if annotation.get('iscrowd', 0) not in (0, 1):
        return f'iscrowd={annotation["iscrowd"]!r}, which is neither 0 nor 1'
    return _fault_of_mask(annotation.get('segmentation'))


def _fault_of_mask(mask: Any) -> str:
    if not mask:
        return ''
    if isinstance(mask, Mapping):
        return _fault_of_code(mask)
    if not isinstance(mask, list):
        return f'the segmentation {mask!r}, which is neither polygons nor an RLE'
    for polygon in mask:
        if not isinstance(polygon, list):
            return 'a segmentation that is no list of polygons'
        try:
            if not math.isfinite(sum(polygon)):
                return _NO_NUMBER
            if polygon and (max(polygon) > _FAR or min(polygon) < -_FAR):
                return f'a polygon with the coordinate {max(polygon, key=abs)!r}'
        except TypeError:
            return 'a polygon of something else than numbers'
    return ''


def _fault_of_code(mask: Mapping[str, Any]) -> str:
    """Return what is wrong with a run-length encoding."""
    size, counts = mask.get('size'), mask.get('counts')
    if not _are_numbers(size, 2) or counts is None:
        return 'an RLE without size or counts'
    if isinstance(counts, list) and sum(counts) != size[0] * size[1]:
        return f'an RLE of {sum(counts)} pixels for an image of {size[0] * size[1]}'
    return ''


def _is_flat(mask: Any) -> bool:
    """Return whether no polygon of a mask has three points."""
    polygons = mask if isinstance(mask, list) else []
    return bool(polygons) and all(len(polygon) < 6 or len(polygon) % 2 for polygon in polygons)


def _are_numbers(value: Any, count: int) -> bool:
    return (
        isinstance(value, list) and len(value) == count and all(isinstance(x, Real) for x in value)
    )
