"""The metrics with batch average after every epoch of a finished training."""

import json
import tempfile
from dataclasses import replace
from itertools import islice
from pathlib import Path

from mmengine.runner import Runner

from sn_openmmlab.layers.batch_average import batch_average
from sn_openmmlab.runs.runner import build_runner
from studies.experiments.evaluation import evaluate, run_batch, train_loader
from studies.experiments.folders import trained_config
from studies.experiments.plan import Run
from studies.experiments.records import Record, read_record
from studies.experiments.statistics_hook import BATCH_AVERAGES, moving
from studies.presentation.experiment_tables import ACCURACY

# Training batches of each batch average.
BATCHES = 100
# Of the moving averages of SN and BN.
MOMENTUM = 0.1


def read_averages(run: Run, work_dir: Path) -> Record:
    """Return the accuracy after every epoch, with moving averages and with batch average.

    The first are in the log. The second are measured from the checkpoints once, and kept in
    `batch_average.json` in the run's work folder.

    Raises:
        UsageError: as in `read_record`.
    """
    record = read_record(run, work_dir)
    file = work_dir / run.name / 'batch_average.json'
    if not file.exists():
        epochs = len(record.metrics[ACCURACY])
        file.write_text(json.dumps(_measure(run, work_dir, epochs)))
    metrics = {
        f'{moving(MOMENTUM)}/{ACCURACY}': record.metrics[ACCURACY],
        f'{BATCH_AVERAGES["mean"]}/{ACCURACY}': json.loads(file.read_text()),
    }
    return replace(record, metrics=metrics)


def _measure(run: Run, work_dir: Path, epochs: int) -> list[float]:
    config = trained_config(run, work_dir)
    files = [work_dir / run.name / f'epoch_{i + 1}.pth' for i in range(epochs)]
    with tempfile.TemporaryDirectory() as config.work_dir:
        runner = build_runner(config)
        return [_accuracy(runner, file) for file in files]


def _accuracy(runner: Runner, checkpoint: Path) -> float:
    runner.load_checkpoint(str(checkpoint))
    batches = islice(train_loader(runner), BATCHES)
    batch_average(runner.model, batches, run_batch, batch_norm=True)
    return evaluate(runner, 'it')[f'it/{ACCURACY}']
