"""The report of a finished run: everything worth keeping, in one folder."""

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mmengine.runner import Runner, find_latest_checkpoint

from sn_openmmlab.analysis.curves import draw_curves, read_curves
from sn_openmmlab.analysis.importance import importance_ratios, write_ratios
from sn_openmmlab.analysis.predictions import draw_prediction_grid
from sn_openmmlab.analysis.ratio_chart import draw_ratio_chart
from sn_openmmlab.errors import UsageError


def find_runs(work_dir: str | Path) -> list[Path]:
    """Return the folders of the trainings in ``work_dir`` that logged scalars, the newest last.

    Raises:
        UsageError: there is none.
    """
    runs = sorted(Path(work_dir).glob('*/vis_data/scalars.json'))
    if not runs:
        raise UsageError(f'{work_dir} holds no finished training: run tools/train.py first.')
    return [run.parent.parent for run in runs]


def newest_checkpoint(work_dir: str | Path) -> Path:
    """Return the newest checkpoint of ``work_dir``.

    Raises:
        UsageError: there is none.
    """
    latest = find_latest_checkpoint(str(work_dir))
    name = work_dir if latest is None else Path(work_dir) / Path(latest).name
    if latest is None or not name.is_file():
        raise UsageError(f'{work_dir} holds no checkpoint: run tools/train.py first.')
    return name


def write_report(
    runner: Runner, checkpoint: Path, runs: Sequence[Path], folder: Path
) -> dict[str, float]:
    """Write checkpoint, log, metrics and figures of a run into ``folder``, replaced whole.

    Args:
        runner: built from the run's config; the checkpoint is loaded into it.
        checkpoint: the trained weights.
        runs: the folders in which mmengine logged the training and what continued it.
        folder: where the report goes.

    Returns:
        The metrics of the last validation.
    """
    losses, metrics = read_curves(run / 'vis_data' / 'scalars.json' for run in runs)
    last = {name: curve[-1][1] for name, curve in metrics.items()}
    runner.load_checkpoint(str(checkpoint))
    rows = importance_ratios(runner.model)
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
        write_ratios(rows, new / 'importance_ratios.csv')
        if rows:
            draw_ratio_chart(rows, new / 'importance_ratios.png')
        if folder.exists():
            folder.rename(Path(scratch) / 'old')
        new.rename(folder)
    return last
