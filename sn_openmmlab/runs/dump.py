"""Writing the config of a run, as the toolbox's own tools read it."""

import tempfile
from pathlib import Path

from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope

from sn_openmmlab.analysis.norm_changes import changes_table, norm_changes
from sn_openmmlab.checkpoints.files.writing import check_output, write_file
from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.errors.sentences import building


def check_dump_config(file: str | Path, config: Config) -> None:
    """Raise UsageError unless the file is a ``.py`` file that the config was not read from."""
    if Path(file).suffix != '.py':
        raise UsageError(f'--dump must name a .py file, not {file}.')
    check_output(file, [config.filename])


def dump_config(config: Config, file: str | Path) -> str:
    """Write a config to a file, once its model could be built.

    Returns:
        The table of the norms that were replaced; ``''`` if none were.

    Raises:
        UsageError: the model cannot be built, or the file cannot be written.
    """
    with (
        building(f'what {config.filename} describes', config),
        DefaultScope.overwrite_default_scope(config.default_scope),
    ):
        changes = norm_changes(MODELS.build(config.model))
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / 'config.py'
        config.dump(written)
        write_file(written.read_bytes(), file)
    return changes_table(changes) if changes else ''
