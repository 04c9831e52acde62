"""The experiment from CIFAR-10 to a detector: its runs, tables and figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sn_openmmlab.analysis.work_dir import newest_checkpoint
from studies.experiments.command_line import TRAIN
from studies.experiments.from_batch_norm import BATCH, schedule
from studies.experiments.plan import SEEDS, Run
from studies.experiments.pool import train_missing
from studies.experiments.records import Record
from studies.presentation.experiment_tables import metric_table, page
from studies.presentation.figures import draw_final_ap
from studies.presentation.markdown import group_by

CLASSIFIER = Run(
    variant='classifier',
    batch=32,
    seed=0,
    config='configs/classification/cifar10/resnet18_sn_1xb32_cifar10-64x64.py',
    options={'randomness.seed': 0},
)
DETECTOR = 'configs/demo/faster-rcnn_r18_fpn_sn-all_digits.py'
EPOCHS = 1
_TITLES = {'scratch': 'random weights', 'pretrained': 'the classifier of CIFAR-10'}


def detectors(checkpoint: Path) -> list[Run]:
    """Return detectors whose backbone starts from random weights or from a checkpoint.

    They differ in nothing else: three seeds each, with equal iterations.
    """
    init = 'model.backbone.init_cfg'
    starts: dict[str, dict[str, Any]] = {
        'scratch': {},
        # The config has None there, which is not merged with a dict.
        'pretrained': {
            f'{init}._delete_': True,
            f'{init}.type': 'SNPretrained',
            f'{init}.checkpoint': str(checkpoint),
        },
    }
    return [
        Run(start, BATCH, seed, DETECTOR, {**schedule(EPOCHS), **options, 'randomness.seed': seed})
        for seed in SEEDS
        for start, options in starts.items()
    ]


def prepare(work_dir: Path) -> list[Run]:
    """Train the classifier unless it is finished, and return the detectors.

    Raises:
        UsageError: the folder cannot be written or is in use, or the training failed.
    """
    folder = work_dir / 'classifier'
    train_missing([CLASSIFIER], TRAIN, folder, jobs=1)
    return detectors(newest_checkpoint(folder / CLASSIFIER.name))


def all_tables(records: Sequence[Record], machine: Mapping[str, Any]) -> str:
    """Return every table of the experiment as a Markdown page."""
    heading = 'From CIFAR-10 to a detector: pretrained by MMPretrain, fine-tuned by MMDetection'
    parts = ['## Box AP after the last iteration (%)', metric_table(records, ['start'], _row)]
    return page(heading, records, machine, parts)


def draw_figures(records: Sequence[Record], folder: Path) -> None:
    """Draw `ap.png`: the AP of each seed and their mean, by how the backbone started."""
    draw_final_ap(group_by(records, lambda record: _row(record)[0]), folder / 'ap.png')


def _row(record: Record) -> tuple[str]:
    return (_TITLES[record.variant],)
