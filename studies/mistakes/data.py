"""Tiny data of each task: rectangles, bright or dark, on noise."""

import json
from pathlib import Path

import cv2
import numpy as np

WIDTH, HEIGHT = 64, 48
CLASSES = ('bright', 'dark')
SPLITS = {'train': 6, 'val': 2}


def make_data(folder: Path) -> None:
    """Write the data of all tasks: images, their boxes and masks, label maps, folders of classes.

    Files: ``images/SPLIT/I.jpg``, ``annotations/SPLIT.json``, ``labels/SPLIT/I.png``,
    ``classes/SPLIT/CLASS/I.jpg``, ``classes/SPLIT.txt``.
    """
    rng = np.random.default_rng(0)
    for split, number in SPLITS.items():
        for place in ('images', 'labels', *(f'classes/{{}}/{name}' for name in CLASSES)):
            where = place.format(split) if '{}' in place else f'{place}/{split}'
            (folder / where).mkdir(parents=True)
        images, boxes, lines = [], [], []
        for i in range(number):
            image, (x, y, w, h), label = _draw(rng, i % 2)
            labels = np.zeros((HEIGHT, WIDTH), np.uint8)
            labels[y : y + h, x : x + w] = 1
            cv2.imwrite(str(folder / f'images/{split}/{i}.jpg'), image)
            cv2.imwrite(str(folder / f'labels/{split}/{i}.png'), labels)
            cv2.imwrite(str(folder / f'classes/{split}/{CLASSES[label]}/{i}.jpg'), image)
            lines.append(f'{CLASSES[label]}/{i}.jpg {label}\n')
            images.append(dict(id=i, file_name=f'{i}.jpg', width=WIDTH, height=HEIGHT))
            outline = [x, y, x + w, y, x + w, y + h, x, y + h]
            box = dict(bbox=[x, y, w, h], area=w * h, segmentation=[outline], iscrowd=0)
            boxes.append(dict(id=i + 1, image_id=i, category_id=label, **box))
        categories = [dict(id=i, name=name) for i, name in enumerate(CLASSES)]
        table = dict(images=images, annotations=boxes, categories=categories)
        (folder / 'annotations').mkdir(exist_ok=True)
        (folder / f'annotations/{split}.json').write_text(json.dumps(table))
        (folder / f'classes/{split}.txt').write_text(''.join(lines))


def _draw(rng: np.random.Generator, label: int) -> tuple[np.ndarray, list[int], int]:
    """Return an image, the x, y, w, h of its rectangle, and the class."""
    image = rng.integers(96, 160, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    w, h = (int(side) for side in rng.integers(16, 32, 2))
    x, y = int(rng.integers(0, WIDTH - w)), int(rng.integers(0, HEIGHT - h))
    image[y : y + h, x : x + w] = (250, 10)[label]
    return image, [x, y, w, h], label
