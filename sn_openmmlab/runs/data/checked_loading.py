"""Loading steps that say which file cannot be read, or skip it."""

import logging
import re
from collections.abc import Mapping
from typing import Any

from mmengine.logging import print_log
from mmengine.registry import TRANSFORMS

from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.arguments import check_flag

# The loading steps of mmcv and the toolboxes that read a file, by the key of its path.
_STEPS = {
    'img_path': re.compile(r'Load\w*Image'),
    'seg_map_path': re.compile(r'Load\w*Annotations'),
}
_MOST_IN_A_ROW = 100


class CheckedLoading:
    """A loading step of a pipeline that says which file cannot be read, or skips the image.

    Our tools put it around the loading steps of a config. For the toolbox's own tools, write in the
    pipeline, once the config imports `sn_openmmlab`:

        dict(type='CheckedLoading', step=dict(type='LoadImageFromFile'), skip=True)

    A skipped image is replaced by another one that the dataset draws, as mmengine does wherever a
    pipeline gives None. Only a training can do so: a test of fewer images would be another test.

    Args:
        step: the config of the step, such as LoadImageFromFile, or of LoadAnnotations of
            MMSegmentation.
        skip: whether to skip files that cannot be read, each with a warning.

    Raises:
        TypeError: if ``skip`` is no bool.
        UsageError: when called, if the file cannot be read and is not skipped, or if a hundred in a
            row cannot be read.
    """

    def __init__(self, step: Mapping[str, Any], skip: bool = False) -> None:
        check_flag('skip', skip)
        self.key = file_key(step)
        self.step = TRANSFORMS.build(dict(step))
        self.skip = skip
        self._warned: set[str] = set()
        self._warned_of_size = False
        self._in_a_row = 0

    def __call__(self, results: dict) -> dict | None:
        """Load the file; return None to skip it, as the step itself does with ``ignore_empty``."""
        file = results.get(self.key)
        if file is None:
            return self.step(results)
        try:
            loaded = self.step(results)
        except Exception as error:
            fault = unreadable(file, error)
            if not self.skip:
                raise UsageError(f'{fault}{_REMEDY}') from error
            self._skip(str(file), fault)
            return None
        self._in_a_row = 0
        self._warn_of_size(str(file), results, loaded)
        if fault := _misfit(str(file), loaded):
            raise UsageError(f'{fault}: make both of the same size.')
        return loaded

    def _skip(self, file: str, fault: str) -> None:
        self._in_a_row += 1
        if self._in_a_row >= _MOST_IN_A_ROW:
            raise UsageError(f'{self._in_a_row} images in a row cannot be read: {fault}{_REMEDY}')
        if file not in self._warned:
            self._warned.add(file)
            print_log(
                f'{fault}; another image takes its place.', logger='current', level=logging.WARNING
            )

    def _warn_of_size(self, file: str, results: dict, loaded: dict | None) -> None:
        """Warn of the first image that has another size than its annotations."""
        fault = wrong_size(file, results, loaded)
        if fault and not self._warned_of_size:
            self._warned_of_size = True
            print_log(
                f'{fault}, so its boxes and masks do not fit; there may be more: '
                'tools/check_data.py CONFIG --decode lists them.',
                logger='current',
                level=logging.WARNING,
            )

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.step}, skip={self.skip})'


_REMEDY = (
    ': replace the file or take it out of the data, or train with --bad-images skip; '
    'tools/check_data.py CONFIG --decode lists all such files.'
)


def file_key(step: Mapping[str, Any]) -> str | None:
    """Return the key of the path that a step of a pipeline reads, or None if it reads no file."""
    kind = step.get('type')
    name = kind if isinstance(kind, str) else getattr(kind, '__name__', '')
    name = name.rpartition('.')[2]
    return next((key for key, pattern in _STEPS.items() if pattern.match(name)), None)


def unreadable(file: str, error: Exception | None) -> str:
    """Return the sentence, without its end, about a file that cannot be read.

    Args:
        file: its path.
        error: what its loading raised; None if that gave nothing.
    """
    if isinstance(error, FileNotFoundError):
        return f'{file} does not exist'
    if isinstance(error, OSError) and error.strerror:
        return f'{file} cannot be read ({error.strerror})'
    # mmcv asserts that its decoder gave an image; Pillow raises an OSError without a number.
    if error is None or isinstance(error, AssertionError | OSError):
        return f'{file} cannot be decoded: it ends early, is damaged or is no image'
    said = str(error).strip().split('\n')[0].rstrip('.') or type(error).__name__
    return f'{file} cannot be read ({said})'


def wrong_size(file: str, item: Mapping[str, Any], loaded: Mapping[str, Any] | None) -> str:
    """Return the sentence, without its end, about an image of another size than annotated, or ''.

    Args:
        file: the path of the image.
        item: of the dataset; those of MMDetection have the ``width`` and ``height`` of the
            annotation file.
        loaded: what the loading step made of it.
    """
    image, size = (loaded or {}).get('img'), (item.get('width'), item.get('height'))
    shape = getattr(image, 'shape', None)
    if None in size or shape is None or tuple(shape[1::-1]) == size:
        return ''
    return (
        f'{file} has {shape[1]} × {shape[0]} pixels, but {size[0]} × {size[1]} in its annotation '
        'file'
    )


def _misfit(file: str, loaded: Mapping[str, Any] | None) -> str:
    """Return the sentence, without its end, about a label map of another size, or ''."""
    # The image may have been resized since it was read, which tests do before they read the map.
    size = (loaded or {}).get('ori_shape')
    shape = getattr((loaded or {}).get('gt_seg_map'), 'shape', None)
    if size is None or shape is None or tuple(size[:2]) == tuple(shape[:2]):
        return ''
    return (
        f'the label map {file} has {shape[1]} × {shape[0]} pixels, but its image '
        f'{size[1]} × {size[0]}'
    )


def with_checked_loading(part: Any, skip: bool) -> Any:
    """Return a copy of a part of a config in which every loading step is a `CheckedLoading`.

    Those that are one already stay as they are.

    Args:
        part: of the config, such as the dataset of a data loader.
        skip: as of `CheckedLoading`.
    """
    kind: Any = type(part)
    if isinstance(part, Mapping):
        if part.get('type') in (CheckedLoading, CheckedLoading.__name__):
            return part
        if file_key(part):
            return kind(type=CheckedLoading.__name__, step=part, skip=skip)
        return kind({key: with_checked_loading(x, skip) for key, x in part.items()})
    if isinstance(part, list | tuple):
        return kind([with_checked_loading(x, skip) for x in part])
    return part
