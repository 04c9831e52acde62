"""The logs and the checkpoint that a training left in its work folder."""

from pathlib import Path

from mmengine.runner import find_latest_checkpoint

from sn_openmmlab.errors import UsageError


def find_runs(work_dir: str | Path) -> list[Path]:
    """Return the folders of the trainings in `work_dir` that logged scalars, the newest last.

    Raises:
        UsageError: there is none.
    """
    runs = sorted(Path(work_dir).glob('*/vis_data/scalars.json'))
    if not runs:
        raise UsageError(f'{work_dir} holds no finished training: run tools/train.py first.')
    return [run.parent.parent for run in runs]


def newest_checkpoint(work_dir: str | Path) -> Path:
    """Return the newest checkpoint of `work_dir`.

    Raises:
        UsageError: there is none.
    """
    latest = find_latest_checkpoint(str(work_dir))
    # The folder may have moved since the training.
    file = None if latest is None else Path(work_dir) / Path(latest).name
    if file is None or not file.is_file():
        raise UsageError(f'{work_dir} holds no checkpoint: run tools/train.py first.')
    return file
