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
        UsageError: there is none, or the file `last_checkpoint` names none.
    """
    folder = Path(work_dir)
    try:
        latest = find_latest_checkpoint(str(folder))
        # The folder may have moved since the training.
        if latest is not None and (file := folder / Path(latest).name).is_file():
            return file
    except (OSError, ValueError):
        pass
    if any(folder.glob('*.pth')):
        raise UsageError(
            f'{folder / "last_checkpoint"} names none of the checkpoints there: write the file '
            'name of one into it.'
        )
    raise UsageError(f'{work_dir} holds no checkpoint: run tools/train.py first.')
