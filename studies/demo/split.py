"""Writing one split: images, label maps, the COCO file, and crops of the digits by class."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import cv2
import numpy as np

from studies.demo.crops import cut_digits
from studies.demo.scene import Scene, tight_box

CROP_SIDE = 32


def write_split(
    folder: Path,
    split: str,
    scenes: Iterable[Scene],
    classes: Sequence[str],
    rng: np.random.Generator,
) -> int:
    """Write ``images/SPLIT``, ``labels/SPLIT``, ``digits/SPLIT`` and the annotation file.

    Args:
        folder: Root of the data set, made if it is missing.
        split: Name of the split.
        scenes: The images with their annotations.
        classes: Name of each digit; digit ``i`` is category and label ``i + 1``.
        rng: Source of what is random in the crops.

    Returns:
        The number of annotated digits.

    Raises:
        OSError: A file cannot be written.
    """
    digits = folder / 'digits' / split
    crops = [f'digits/{split}/{name}' for name in classes]
    for part in (f'images/{split}', f'labels/{split}', 'annotations', *crops):
        (folder / part).mkdir(parents=True, exist_ok=True)
    images: list[dict] = []
    annotations: list[dict] = []
    for image_id, scene in enumerate(scenes, start=1):
        name = f'{image_id - 1:06d}.png'
        _write_png(folder / 'images' / split / name, scene.image[..., ::-1])
        _write_png(folder / 'labels' / split / name, _label_map(scene))
        for i, crop in enumerate(cut_digits(rng, scene, CROP_SIDE)):
            crop_name = f'{image_id - 1:06d}_{i}.png'
            _write_png(digits / classes[scene.labels[i]] / crop_name, crop[..., ::-1])
        height, width = scene.image.shape[:2]
        images.append({'id': image_id, 'file_name': name, 'width': width, 'height': height})
        for label, mask in zip(scene.labels, scene.masks, strict=True):
            identity = {'id': len(annotations) + 1, 'image_id': image_id}
            annotations.append(identity | _annotation(int(label), mask))
    categories = [{'id': i, 'name': name} for i, name in enumerate(classes, start=1)]
    content = {'images': images, 'annotations': annotations, 'categories': categories}
    (folder / 'annotations' / f'instances_{split}.json').write_text(json.dumps(content))
    return len(annotations)


def _write_png(path: Path, image: np.ndarray) -> None:
    # cv2.imwrite only returns False if writing fails.
    path.write_bytes(cv2.imencode('.png', image)[1].tobytes())


def _label_map(scene: Scene) -> np.ndarray:
    labels = np.zeros(scene.image.shape[:2], np.uint8)
    for label, mask in zip(scene.labels, scene.masks, strict=True):
        labels[mask] = label + 1
    return labels


def _annotation(label: int, mask: np.ndarray) -> dict:
    # Imported only here: readers of the class names do not need pycocotools.
    from pycocotools.mask import encode

    segmentation = encode(np.asfortranarray(mask, dtype=np.uint8))
    return {
        'category_id': label + 1,
        'bbox': list(tight_box(mask)),
        'area': int(mask.sum()),
        'iscrowd': 0,
        'segmentation': {
            'size': segmentation['size'],
            'counts': segmentation['counts'].decode('ascii'),
        },
    }
