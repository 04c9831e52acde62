"""The small-batch experiment's tables and pictures: BN, GN and SN, and SN's ratios."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from studies.experiments.records import Record
from studies.presentation.experiment_tables import (
    AP,
    by_case,
    epoch_table,
    final_table,
    ratio_table,
)
from studies.presentation.figures import draw_ap, draw_ratios

METRICS = {'AP': AP, 'AP50': f'{AP}_50', 'AP75': f'{AP}_75'}
PARTS = ('backbone', 'neck', 'bbox_head')


def all_tables(records: Sequence[Record], machine: Mapping[str, Any]) -> str:
    """Every table of the experiment as a Markdown page."""
    seeds = len({record.seed for record in records})
    return '\n\n'.join(
        [
            '# Small batches: BN, GN and SN from scratch on the demo data',
            f'{machine["device"]}, threads of each training: {machine["threads"]}, torch '
            f'{machine["torch"]}; mean ± sample standard deviation over {seeds} seeds.',
            '## Box AP after the last epoch (%)',
            final_table(records, METRICS),
            '## Box AP after each epoch (%)',
            epoch_table(records),
            '## Importance ratios of SN after the last epoch',
            ratio_table(_of_sn(records)),
        ]
    )


def draw_figures(records: Sequence[Record], folder: Path) -> None:
    """Draw ``ap.png``, the norms at two images a step, and ``ratios.png``, SN over the batch."""
    groups = {
        variant.upper(): group for (variant, batch), group in by_case(records).items() if batch == 2
    }
    draw_ap(groups, 'from scratch, 2 images per step', folder / 'ap.png')
    draw_ratios(_of_sn(records), PARTS, folder / 'ratios.png')


def _of_sn(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.variant == 'sn']
