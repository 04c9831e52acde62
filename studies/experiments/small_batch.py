"""The small-batch experiment: BN, GN and SN from scratch, and SN's ratios by batch size."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from studies.experiments.plan import Run, small_batch_runs
from studies.experiments.records import Record
from studies.presentation.experiment_tables import epoch_table, metric_table, page, ratio_table
from studies.presentation.figures import draw_ap, draw_ratios
from studies.presentation.markdown import group_by

PARTS = ('backbone', 'neck', 'bbox_head')
_TITLES = ('norm', 'batch')


def prepare(work_dir: Path) -> list[Run]:
    """Return the runs, which need nothing in their folder."""
    return small_batch_runs()


def all_tables(records: Sequence[Record], machine: Mapping[str, Any]) -> str:
    """Return every table of the experiment as a Markdown page."""
    parts = [
        '## Box AP after the last epoch (%)',
        metric_table(records, _TITLES, _row),
        '## Box AP after each epoch (%)',
        epoch_table(records, _TITLES, _row),
        '## Importance ratios of SN after the last epoch',
        ratio_table(_of_sn(records)),
    ]
    title = 'Small batches: BN, GN and SN from scratch on the demo data'
    return page(title, records, machine, parts)


def draw_figures(records: Sequence[Record], folder: Path) -> None:
    """Draw `ap.png`, the norms at two images a step, and `ratios.png`, SN by batch size."""
    pairs = [record for record in records if record.batch == 2]
    groups = group_by(pairs, lambda record: record.variant.upper())
    draw_ap(groups, 'from scratch, 2 images per step', folder / 'ap.png')
    draw_ratios(_of_sn(records), PARTS, folder / 'ratios.png')


def _row(record: Record) -> tuple[str, str]:
    return record.variant.upper(), str(record.batch)


def _of_sn(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.variant == 'sn']
