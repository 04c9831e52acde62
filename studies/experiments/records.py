"""The results of finished runs: their metrics and their learned ratios."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope

from sn_openmmlab.analysis.curves import read_curves
from sn_openmmlab.analysis.importance import LayerRatios, importance_ratios
from sn_openmmlab.analysis.norms import part_of
from sn_openmmlab.analysis.work_dir import find_runs, newest_checkpoint
from sn_openmmlab.checkpoints.files.safe_loading import read_checkpoint
from studies.experiments.folders import trained_config
from studies.experiments.plan import Run

# By part of the model, by 'mean' (w) or 'var' (w′), and by scope.
Ratios = dict[str, dict[str, dict[str, float]]]


@dataclass(frozen=True)
class Record:
    """The results of one run.

    Attributes:
        variant: as in `Run`.
        batch: as in `Run`.
        seed: as in `Run`.
        metrics: the value after each validation, by the name that mmengine logs.
        ratios: after the last epoch, averaged over the layers of each part of the model and over
            all layers (`'all'`); empty without Switchable Normalization.
    """

    variant: str
    batch: int
    seed: int
    metrics: dict[str, list[float]]
    ratios: Ratios


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
    return Record(run.variant, run.batch, run.seed, values, mean_ratios(layers))


def mean_ratios(layers: Sequence[LayerRatios]) -> Ratios:
    """Average the ratios over the layers of each part of a model, and over all (Fig. 4)."""
    parts: dict[str, list[LayerRatios]] = {}
    for layer in layers:
        parts.setdefault(part_of(layer.name), []).append(layer)
    if parts:
        parts['all'] = list(layers)
    return {part: _average(group) for part, group in parts.items()}


def write_records(records: Iterable[Record], machine: Mapping[str, Any], file: Path) -> None:
    """Write the records and their machine as JSON, a line per record."""
    lines = ',\n'.join(json.dumps(asdict(record)) for record in records)
    file.write_text(f'{{"machine": {json.dumps(machine)},\n"runs": [\n{lines}\n]}}\n')


def read_records(file: Path) -> tuple[list[Record], dict[str, Any]]:
    """Return the records and the machine of a file that `write_records` wrote."""
    data = json.loads(file.read_text())
    return [Record(**run) for run in data['runs']], data['machine']


def _learned_ratios(config: Config, checkpoint: Path) -> list[LayerRatios]:
    init_default_scope(config.default_scope)
    model = MODELS.build(config.model)
    model.load_state_dict(read_checkpoint(checkpoint)['state_dict'])
    return importance_ratios(model)


def _average(layers: Sequence[LayerRatios]) -> dict[str, dict[str, float]]:
    scopes = layers[0].scopes
    return {
        kind: {
            scope: mean(getattr(layer, kind)[i] for layer in layers)
            for i, scope in enumerate(scopes)
        }
        for kind in ('mean', 'var')
    }
