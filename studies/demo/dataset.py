"""Making the demo data set in a folder, once.

The folder holds::

    demo.json                                 how the data was made
    images/{train,val}/000000.png             RGB photographs with digits
    labels/{train,val}/000000.png             uint8: 0 background, 1 to 10 the digits 0 to 9
    annotations/instances_{train,val}.json    COCO boxes and masks, categories 1 to 10
    digits/{train,val}/7/000000_0.png         RGB crops of 32x32 pixels, a folder for each digit
"""

import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from studies.demo.backgrounds import load_photographs
from studies.demo.digits import load_digit_sets
from studies.demo.scene import MIN_SIDE, Scene, compose_scene
from studies.demo.split import write_split

CLASSES = ('0', '1', '2', '3', '4', '5', '6', '7', '8', '9')

_FORMAT_VERSION = 2
_RECORD = 'demo.json'
# Of the random numbers. `crops.py` uses 2 and 3.
_STREAMS = {'train': 0, 'val': 1, 'train crops': 4, 'val crops': 5}


@dataclass(frozen=True)
class DemoParameters:
    """The parameters of the data; the same values give the same data.

    Attributes:
        train: Number of train images, at least 1.
        val: Number of val images, at least 1.
        seed: Seed of all randomness, at least 0.
        width: Width of every image in pixels, at least ``MIN_SIDE``.
        height: Height of every image in pixels, at least ``MIN_SIDE``.

    Raises:
        ValueError: A value is out of its range.
    """

    train: int = 400
    val: int = 100
    seed: int = 0
    width: int = 256
    height: int = 192

    def __post_init__(self) -> None:
        if min(self.train, self.val) < 1:
            raise ValueError(
                'the demo data needs at least 1 train and 1 val image, '
                f'not {self.train} and {self.val}.'
            )
        if self.seed < 0:
            raise ValueError(f'the seed of the demo data must be 0 or more, not {self.seed}.')
        if min(self.width, self.height) < MIN_SIDE:
            raise ValueError(
                f'images of the demo data must be at least {MIN_SIDE} x {MIN_SIDE} pixels '
                f'to hold the tallest digit, not {self.width} x {self.height}.'
            )


@dataclass(frozen=True)
class DemoData:
    """A finished demo data set.

    Attributes:
        root: Its folder, an absolute path.
        instances: Number of annotated digits, by "train" and "val".
        reused: Whether the folder existed already.
    """

    root: Path
    instances: dict[str, int]
    reused: bool


def make_demo_data(root: str | Path, parameters: DemoParameters | None = None) -> DemoData:
    """Make the demo data set in the folder ``root``, or reuse it if it is already there.

    The folder appears only once it is complete: an interrupted run leaves no incomplete one.

    Args:
        root: Folder to make. An existing one must be empty or hold data of the same parameters.
        parameters: By default those of ``DemoParameters()``.

    Raises:
        ValueError: `root` holds something else, which stays as it is.
        OSError: `root` cannot be written.
        ImportError: scikit-learn or scikit-image is not installed.
        FileNotFoundError: The installed scikit-image or scikit-learn lacks a photograph.
    """
    root = Path(root).resolve()
    parameters = parameters or DemoParameters()
    finished = _find_finished(root, parameters)
    if finished:
        return finished
    scene_at = _scene_source(parameters)
    try:
        return _make(root, parameters, scene_at)
    except OSError as error:
        reason = error.strerror or error
        raise OSError(f'the demo data cannot be written to {root}: {reason}.') from error


def _find_finished(root: Path, parameters: DemoParameters) -> DemoData | None:
    if not root.exists() or (root.is_dir() and not any(root.iterdir())):
        return None
    advice = 'name another folder, or move this one away'
    try:
        record = json.loads((root / _RECORD).read_text())
        made = (record['format_version'], record['parameters'])
        instances = dict(record['instances'])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f'{root} exists but is not demo data: {advice}.') from error
    if made != (_FORMAT_VERSION, asdict(parameters)):
        raise ValueError(
            f'{root} holds demo data of format {made[0]} with other parameters '
            f'({made[1]}): {advice}.'
        )
    return DemoData(root, instances, reused=True)


def _scene_source(parameters: DemoParameters) -> Callable[[str, int], Scene]:
    photographs = load_photographs()
    digit_sets = load_digit_sets()

    def scene_at(split: str, index: int) -> Scene:
        rng = np.random.default_rng([parameters.seed, _STREAMS[split], index])
        return compose_scene(
            rng, photographs, digit_sets[split], parameters.width, parameters.height
        )

    return scene_at


def _make(
    root: Path, parameters: DemoParameters, scene_at: Callable[[str, int], Scene]
) -> DemoData:
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f'.{root.name}-', dir=root.parent) as scratch:
        unfinished = Path(scratch) / root.name
        instances = {}
        for split, count in (('train', parameters.train), ('val', parameters.val)):
            scenes = (scene_at(split, index) for index in range(count))
            rng = np.random.default_rng([parameters.seed, _STREAMS[f'{split} crops']])
            instances[split] = write_split(unfinished, split, scenes, CLASSES, rng)
        _write_record(unfinished, parameters, instances)
        return _move(DemoData(unfinished, instances, reused=False), root, parameters)


def _write_record(folder: Path, parameters: DemoParameters, instances: dict[str, int]) -> None:
    record = {
        'format_version': _FORMAT_VERSION,
        'parameters': asdict(parameters),
        'instances': instances,
    }
    (folder / _RECORD).write_text(json.dumps(record, indent=2) + '\n')


def _move(data: DemoData, root: Path, parameters: DemoParameters) -> DemoData:
    # Another process may have finished the same folder in the meantime.
    finished = _find_finished(root, parameters)
    if finished:
        return finished
    if root.exists():
        root.rmdir()
    data.root.rename(root)
    return DemoData(root, data.instances, reused=False)
