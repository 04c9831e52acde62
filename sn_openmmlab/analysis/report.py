"""The report of a finished run: checkpoint, log, metrics and figures in one folder."""

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mmengine.runner import Runner

from sn_openmmlab.analysis.curves import draw_curves, read_curves
from sn_openmmlab.analysis.importance import importance_ratios
from sn_openmmlab.analysis.layer_figure import layers_figure
from sn_openmmlab.analysis.predictions import draw_prediction_grid
from sn_openmmlab.analysis.ratio_table import csv_table


def write_report(
    runner: Runner, checkpoint: Path, runs: Sequence[Path], folder: Path
) -> dict[str, float]:
    """Write checkpoint, log, metrics and figures of a run into a folder, which is replaced.

    Args:
        runner: built from the run's config. The checkpoint is loaded into it.
        checkpoint: the trained weights.
        runs: the folders where mmengine logged the training and its continuations.
        folder: of the report. A failure leaves an old report as it is.

    Returns:
        The metrics of the last validation.
    """
    losses, metrics = read_curves(run / 'vis_data' / 'scalars.json' for run in runs)
    last = {name: curve[-1][1] for name, curve in metrics.items()}
    runner.load_checkpoint(str(checkpoint))
    ratios = {folder.parent.name: importance_ratios(runner.model)}
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        new = Path(scratch) / 'new'
        new.mkdir()
        shutil.copy(checkpoint, new / 'checkpoint.pth')
        shutil.copy(runs[-1] / f'{runs[-1].name}.log', new / 'train.log')
        shutil.copy(runs[-1] / 'vis_data' / 'config.py', new / 'config.py')
        (new / 'metrics.json').write_text(json.dumps(last, indent=2) + '\n')
        draw_curves(losses, metrics, new / 'curves.png')
        draw_prediction_grid(runner, new / 'predictions.png')
        (new / 'importance_ratios.csv').write_text(csv_table(ratios))
        if any(ratios.values()):
            layers_figure(ratios).savefig(new / 'importance_ratios.png')
        if folder.exists():
            folder.rename(Path(scratch) / 'old')
        new.rename(folder)
    return last
