"""The experiment on CIFAR-10: SN, BN and GN, normalized over 16 images and over 2."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from studies.experiments.plan import Run, cifar10_runs
from studies.experiments.records import Record
from studies.presentation.experiment_tables import accuracy_table, page, ratio_table
from studies.presentation.figures import draw_final_accuracy, draw_ratios
from studies.presentation.markdown import group_by

_TITLES = ('norm', 'batch')


def prepare(work_dir: Path) -> list[Run]:
    """Return the runs, which need nothing in their folder."""
    return cifar10_runs()


def all_tables(records: Sequence[Record], machine: Mapping[str, Any]) -> str:
    """Return every table of the experiment as a Markdown page."""
    parts = [
        '## Top-1 accuracy after the last epoch (%)',
        accuracy_table(records, _TITLES, _row),
        '## Importance ratios of SN after the last epoch',
        ratio_table(_of_sn(records)),
    ]
    title = 'CIFAR-10: SN, BN and GN over 16 images and over 2'
    return page(title, records, machine, parts)


def draw_figures(records: Sequence[Record], folder: Path) -> None:
    """Draw `accuracy.png`, each seed by norm and batch, and `ratios.png`, SN by batch."""
    groups = group_by(records, lambda record: '{} over {}'.format(*_row(record)))
    draw_final_accuracy(groups, folder / 'accuracy.png')
    draw_ratios(_of_sn(records), ['all'], folder / 'ratios.png', 'images normalized together')


def _row(record: Record) -> tuple[str, str]:
    return record.variant.upper(), str(record.batch)


def _of_sn(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.variant == 'sn']
