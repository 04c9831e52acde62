"""The work folders of an experiment's runs."""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.config import read_config
from studies.experiments.plan import Run


def done_file(run: Run, work_dir: Path) -> Path:
    """Return the path of the empty file that marks a finished training in its work folder."""
    return work_dir / run.name / 'done'


def trained_config(run: Run, work_dir: Path) -> Config:
    """Return the config that mmengine wrote into the work folder of a run.

    Raises:
        UsageError: the file is missing, or differs from the run's config with its options.
    """
    file = work_dir / run.name / Path(run.config).name
    config = read_config(file)
    found, needed = _settings(config), _settings(read_config(run.config, run.options))
    for key in {**needed, **found}:
        pair = [settings.get(key, 'nothing') for settings in (found, needed)]
        if pair[0] != pair[1]:
            raise UsageError(
                f'{file.parent} was trained with {key}={pair[0]}, but the experiment needs '
                f'{pair[1]}: remove that folder, or name another --work-dir.'
            )
    return config


def is_finished(run: Run, work_dir: Path) -> bool:
    """Return whether a run's training is finished.

    Raises:
        UsageError: it is, but with another config or other options.
    """
    if not done_file(run, work_dir).is_file():
        return False
    trained_config(run, work_dir)
    return True


def settings_digest(run: Run) -> str:
    """Return 16 digits that tell apart runs by the settings of their training."""
    settings = _settings(read_config(run.config, run.options))
    return sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _settings(config: Config) -> dict[str, Any]:
    """Return the settings by dotted key, without the work folder and the launcher.

    Of a checkpoint to start from only its run and its name count, as in `sn_b2_s0/epoch_6.pth`:
    the folder of all runs may be anywhere.
    """
    kept = {k: v for k, v in config.to_dict().items() if k not in ('work_dir', 'launcher')}
    if start := kept.get('load_from'):
        kept['load_from'] = '/'.join(Path(start).parts[-2:])
    return dict(_leaves(kept))


def _leaves(value: Any, key: str = '') -> Iterator[tuple[str, Any]]:
    if not value or not isinstance(value, dict | list | tuple):
        yield key, value
        return
    for name, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _leaves(item, f'{key}.{name}' if key else str(name))
