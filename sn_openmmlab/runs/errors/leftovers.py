"""What a run leaves behind that stops before it has a result."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmengine.config import Config

from sn_openmmlab.errors import UsageError

# mmengine names the folder of a run's log by the second of its start.
_LOG_FOLDER = re.compile(r'\d{8}_\d{6}')


@contextmanager
def no_leftovers(config: Config) -> Iterator[None]:
    """Remove what a run has written if a UsageError stops it before it has a result.

    Results are checkpoints, logged losses and metrics, and pictures. Without any, there are only a
    log and copies of the config, and the work folder becomes as it was before.

    Args:
        config: of the run, with its work folder.
    """
    folder = Path(config.work_dir)
    made = [parent for parent in (folder, *folder.parents) if not os.path.lexists(parent)]
    before = _names(folder)
    copy = folder / Path(config.filename or '').name
    old = copy.read_bytes() if os.path.isfile(copy) else None
    try:
        yield
    except UsageError:
        new = [folder / name for name in _names(folder) - before]
        logs = [path for path in new if _LOG_FOLDER.fullmatch(path.name)]
        if any(path.suffix == '.pth' for path in new) or any(map(_has_result, logs)):
            raise
        for path in logs:
            shutil.rmtree(path, ignore_errors=True)
        if old is not None:
            copy.write_bytes(old)
        elif copy in new:
            copy.unlink(missing_ok=True)
        _remove_empty(made)
        raise


def _names(folder: Path) -> set[str]:
    return set(os.listdir(folder)) if os.path.isdir(folder) else set()


def _has_result(folder: Path) -> bool:
    """Return whether a folder has more than a log, copies of the config and empty files."""
    files = (file for file in folder.rglob('*') if file.is_file())
    return any(
        file.stat().st_size and file.suffix not in ('.log', '.py') and 'tfevents' not in file.name
        for file in files
    )


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return
