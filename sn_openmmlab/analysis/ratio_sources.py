"""The checkpoints and runs whose ratios are shown together, under labels that tell them apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sn_openmmlab.analysis.checkpoint_ratios import read_ratios
from sn_openmmlab.analysis.importance import LayerRatios
from sn_openmmlab.analysis.ratio_course import Course, read_course
from sn_openmmlab.analysis.work_dir import newest_checkpoint
from sn_openmmlab.errors import UsageError


@dataclass(frozen=True)
class Source:
    """A network whose ratios are shown.

    Attributes:
        label: what the figures call it.
        layers: its ratios; those of the newest checkpoint of a run.
        course: its averaged ratios over the training; empty for a checkpoint file.
    """

    label: str
    layers: Sequence[LayerRatios]
    course: Course


def open_sources(paths: Sequence[Path], labels: Sequence[str] | None = None) -> list[Source]:
    """Read checkpoint files, and the work folders of trainings.

    Args:
        paths: of the files and folders.
        labels: one for each. By default a folder has its name, and a file its own without the
            suffix; where these are the same, the folders above are added.

    Raises:
        UsageError: there is no such file or folder, or it holds no readable ratios; or the labels
            are of another number, or repeated.
    """
    for path in paths:
        _check_exists(path)
    labels = _default_labels(paths) if labels is None else labels
    if len(labels) != len(paths):
        raise UsageError(f'--labels has {len(labels)} names for {len(paths)} checkpoints or runs.')
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise UsageError(f'{twice!r} stands for two checkpoints or runs: give different --labels.')
    return [_read(path, label) for path, label in zip(paths, labels, strict=True)]


def _check_exists(path: Path) -> None:
    try:
        exists = path.exists()
    except OSError as error:
        raise UsageError(f'{path} cannot be read: {error.strerror}.') from error
    if not exists:
        raise UsageError(f'there is no checkpoint or work folder {path}.')


def _read(path: Path, label: str) -> Source:
    if path.is_dir():
        return Source(label, read_ratios(newest_checkpoint(path)), read_course(path))
    return Source(label, read_ratios(path), {})


def _default_labels(paths: Sequence[Path]) -> list[str]:
    """Return the shortest ends of the paths that differ, without suffixes of files."""
    full = [path.resolve() for path in paths]
    parts = [(path if path.is_dir() else path.with_suffix('')).parts for path in full]
    for length in range(1, max(map(len, parts)) + 1):
        labels = ['/'.join(part[-length:]) for part in parts]
        if len(set(labels)) == len(set(parts)):
            break
    return labels
