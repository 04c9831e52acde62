"""The newest checkpoint of a training whose weights are finite."""

from pathlib import Path

from mmengine.hooks import CheckpointHook
from mmengine.runner import Runner

from sn_openmmlab.checkpoints.files.safe_loading import read_checkpoint
from sn_openmmlab.errors import UsageError
from sn_openmmlab.hooks.non_finite.checks import is_non_finite, tensors_in


def checkpoint_folder(runner: Runner) -> Path:
    """Return the folder of a run's checkpoints."""
    folders = [hook.out_dir for hook in runner.hooks if isinstance(hook, CheckpointHook)]
    return Path(next((folder for folder in folders if folder), runner.work_dir))


def last_good_checkpoint(folder: Path) -> Path | None:
    """Return the newest checkpoint in a folder whose weights and averages are all finite."""
    files = sorted(folder.glob('*.pth'), key=lambda file: file.stat().st_mtime, reverse=True)
    return next((file for file in files if _is_good(file)), None)


def _is_good(file: Path) -> bool:
    try:
        checkpoint = read_checkpoint(file)
    except UsageError:  # Cut short, or none.
        return False
    parts = [checkpoint.get(key) for key in ('state_dict', 'ema_state_dict')]
    return parts[0] is not None and not any(map(is_non_finite, tensors_in(parts)))
