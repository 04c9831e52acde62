"""The work folders of an experiment's runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from sn_openmmlab.experiments.plan import Run
from sn_openmmlab.runs.config import read_config


def done_file(run: Run, work_dir: Path) -> Path:
    """The empty file in a run's work folder that says that its training came to its end."""
    return work_dir / run.name / 'done'


def trained_config(run: Run, work_dir: Path) -> Config:
    """Return the config that mmengine wrote into the work folder of a run.

    Raises:
        UsageError: there is none of this name, or it has other settings than the run's options.
    """
    file = work_dir / run.name / Path(run.config).name
    config = read_config(file)
    settings = config.to_dict()
    for key, value in run.options.items():
        found = _setting(settings, key)
        if found != value:
            raise UsageError(
                f'{file.parent} was trained with {key}={found}, but the experiment needs {value}: '
                'remove that folder, or name another --work-dir.'
            )
    return config


def is_finished(run: Run, work_dir: Path) -> bool:
    """Whether a run's training came to its end.

    Raises:
        UsageError: it did, but by another config or with other options than the run's.
    """
    if not done_file(run, work_dir).is_file():
        return False
    trained_config(run, work_dir)
    return True


def _setting(settings: Any, key: str) -> Any:
    """The value under a dotted key, or None."""
    for part in key.split('.'):
        if isinstance(settings, Mapping):
            settings = settings.get(part)
        elif isinstance(settings, Sequence) and int(part) < len(settings):
            settings = settings[int(part)]
        else:
            return None
    return settings
