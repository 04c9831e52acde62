"""The results of finished runs: their metrics and their learned ratios."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope

from sn_openmmlab.analysis.curves import read_curves
from sn_openmmlab.analysis.importance import (
    LayerRatios,
    Ratios,
    importance_ratios,
    ratios_by_part,
)
from sn_openmmlab.analysis.work_dir import find_runs, newest_checkpoint
from sn_openmmlab.checkpoints.files.safe_loading import read_checkpoint
from sn_openmmlab.errors import UsageError
from studies.experiments.folders import settings_digest, trained_config
from studies.experiments.plan import Run


@dataclass(frozen=True)
class Record:
    """The results of one run.

    Attributes:
        variant: as in `Run`.
        batch: as in `Run`.
        seed: as in `Run`.
        metrics: the value after each validation, by the name that mmengine logs.
        ratios: after the last epoch, averaged over the layers of each part of the model, or of each
            stage of its only part, and over all layers (`'all'`); empty without Switchable
            Normalization.
        settings: the digest of the training's settings; empty in files from before there was one.
    """

    variant: str
    batch: int
    seed: int
    metrics: dict[str, list[float]]
    ratios: Ratios
    settings: str = ''


def read_record(run: Run, work_dir: Path) -> Record:
    """Read the results of a finished run from its work folder.

    Raises:
        UsageError: the config, the log or the checkpoint is missing, the run was trained with other
            settings, or the checkpoint could run code.
    """
    folder = work_dir / run.name
    config = trained_config(run, work_dir)
    _, metrics = read_curves(part / 'vis_data' / 'scalars.json' for part in find_runs(folder))
    values = {name: [value for _, value in curve] for name, curve in metrics.items()}
    layers = _learned_ratios(config, newest_checkpoint(folder))
    ratios, settings = ratios_by_part(layers), settings_digest(run)
    return Record(run.variant, run.batch, run.seed, values, ratios, settings)


def write_records(records: Iterable[Record], machine: Mapping[str, Any], file: Path) -> None:
    """Write the records and their machine as JSON, a line per record."""
    lines = ',\n'.join(json.dumps(asdict(record)) for record in records)
    file.write_text(f'{{"machine": {json.dumps(machine)},\n"runs": [\n{lines}\n]}}\n')


def read_records(file: Path) -> tuple[list[Record], dict[str, Any]]:
    """Return the records and the machine of a file that `write_records` wrote.

    Raises:
        UsageError: the file holds something else, or is damaged.
    """
    try:
        data = json.loads(file.read_text())
        return [Record(**run) for run in data['runs']], data['machine']
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f'{file} is damaged, or not from an experiment: remove it, or name another folder.'
        ) from error


def _learned_ratios(config: Config, checkpoint: Path) -> list[LayerRatios]:
    init_default_scope(config.default_scope)
    model = MODELS.build(config.model)
    model.load_state_dict(read_checkpoint(checkpoint)['state_dict'])
    return importance_ratios(model)
