"""The checkpoint that a training goes on from: the newest that is whole."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import torch

from sn_openmmlab.checkpoints.files.damage import is_damaged
from sn_openmmlab.checkpoints.files.file_check import check_file
from sn_openmmlab.checkpoints.files.safe_globals import allow_mmengine_checkpoints
from sn_openmmlab.checkpoints.files.training_state import check_state
from sn_openmmlab.errors import UsageError


class _Training(NamedTuple):
    """A checkpoint that can be resumed, ordered as it is looked for.

    Attributes:
        timely: whether it is not older than the one in ``last_checkpoint``. What trained longer,
            but is older, was given up when an earlier checkpoint was resumed.
        iteration: how many it has trained.
        time: when it was written.
        file: that holds it.
    """

    timely: bool
    iteration: int
    time: float
    file: Path


def newest_checkpoint(work_dir: str | Path, folders: Iterable[str | Path] = ()) -> str | None:
    """Return the newest whole checkpoint of a training; None if there is none yet.

    This is the one that the file ``last_checkpoint`` names, unless the training was killed between
    a later one and that file. Where either is damaged, it is the one that trained the longest.
    One sentence is printed for each file that is skipped, except for those of ``save_best``.

    Args:
        work_dir: of the training.
        folders: others that may hold its checkpoints.

    Raises:
        UsageError: ``last_checkpoint`` is there, but no whole checkpoint.
    """
    record = Path(work_dir) / 'last_checkpoint'
    named = record.read_text(errors='replace').strip() if record.is_file() else None
    if named and '://' in named:
        return named
    last = _last(Path(work_dir), named) if named is not None else None
    places = dict.fromkeys([Path(work_dir), *map(Path, folders), *([last.parent] if last else [])])
    files = {file for place in places for file in place.glob('*.pth') if file.is_file()}
    # With filename_tmpl its name may end in anything.
    files |= {last} if last else set()
    for training in sorted(_trainings(files, last), reverse=True):
        if not is_damaged(training.file):
            return str(training.file)
        _say_skipped(training.file, 'it is damaged')
    if named is None:
        return None
    raise UsageError(
        f'{work_dir} has no whole checkpoint to go on from, but {record} says that there was one: '
        'name another with --resume CHECKPOINT, or remove that file to start from the beginning.'
    )


def _last(folder: Path, named: str) -> Path | None:
    """Return the file that ``last_checkpoint`` names, also where the folder was moved since."""
    for file in (folder / Path(named).name, Path(named)):
        if file.is_file():
            return file
    what = f'names {named}, which does not exist' if named else 'is empty'
    _say(f'{folder / "last_checkpoint"} {what}: looking for the newest checkpoint.')
    return None


def _trainings(files: Iterable[Path], last: Path | None) -> Iterator[_Training]:
    allow_mmengine_checkpoints()
    earliest = last.stat().st_mtime if last else 0
    for file in sorted(files):
        if file.name.startswith('best_') and file != last:
            continue  # It has no optimizer state.
        try:
            check_file(str(file))
            # The weights stay on the disk.
            checkpoint = torch.load(file, map_location='cpu', weights_only=True, mmap=True)
        except Exception:  # Damaged bytes can raise anything.
            _say_skipped(file, 'it is cut short, damaged or no checkpoint')
            continue
        if not _is_training(checkpoint, str(file)) or (
            'optimizer' not in checkpoint and file != last
        ):
            _say_skipped(file, 'it holds no training that can be resumed')
            continue
        time = file.stat().st_mtime
        yield _Training(time >= earliest, checkpoint['meta']['iter'], time, file)


def _is_training(checkpoint: object, name: str) -> bool:
    if not isinstance(checkpoint, dict):
        return False
    try:
        check_state(checkpoint, name)
    except UsageError:
        return False
    return True


def _say_skipped(file: Path, why: str) -> None:
    _say(f'{file} is skipped: {why}.')


def _say(sentence: str) -> None:
    """Print a sentence once of all processes that torchrun started: there is no log yet."""
    if os.environ.get('RANK', '0') == '0':
        print(sentence)
