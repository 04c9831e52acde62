"""The experiment on the paper's claims: norms over few and many images per GPU on CIFAR-10."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from studies.experiments.claims_runs import PER_GPU, SETTINGS, SINGLE, SMALL
from studies.experiments.records import Record
from studies.presentation.experiment_tables import (
    ACCURACY,
    accuracy_table,
    page,
    ratio_table,
    spread,
)
from studies.presentation.figures import draw_lines, draw_ratios
from studies.presentation.markdown import Column, table

TITLES = {
    'sn': 'SN',
    'bn': 'BN',
    'brn': 'BRN',
    'gn': 'GN',
    'ln': 'LN',
    'in': 'IN',
    'sn-in-ln': 'SN without `bn`',
    'sn-rate-x10': 'λ learns 10 times as fast',
    'sn-rate-x0.1': 'λ learns a tenth as fast',
    'sn-no-decay': 'no weight decay on λ',
    'sn-gn': '`gn` of 8 groups in place of `ln`',
    'sn-correction': 'correction 1',
}
OVER_GPUS = ('sn', 'bn', 'brn')


def all_tables(records: Sequence[Record], machine: Mapping[str, Any]) -> str:
    """Return every table of the experiment as a Markdown page."""
    over_gpus = [record for record in records if record.variant in OVER_GPUS]
    single = [record for record in records if record.variant in SINGLE]
    settings = [r for r in records if r.variant in SETTINGS or _is_reference(r)]
    parts = [
        '## Top-1 accuracy (%) by images per GPU',
        _gpu_table(over_gpus),
        '## Top-1 accuracy (%) of norms that no other image matters to',
        accuracy_table(single, ['norm'], _title),
        '## Importance ratios of SN by images per GPU',
        ratio_table([record for record in records if record.variant == 'sn']),
        '## Settings of SN at 2 images per GPU: top-1 accuracy (%)',
        accuracy_table(settings, ['setting'], _title),
        '## Settings of SN at 2 images per GPU: importance ratios over all layers',
        _setting_table(settings),
        '## Every training: top-1 accuracy (%) after each epoch',
        _epoch_table(records),
    ]
    return page('The claims of the paper on CIFAR-10', records, machine, parts)


def draw_figures(records: Sequence[Record], folder: Path) -> None:
    """Draw `accuracy.png` and `ratios.png`, both over the images per GPU."""
    accuracies: dict[str, dict[int, list[float]]] = {}
    for record in records:
        by_size = accuracies.setdefault(record.variant, {})
        by_size.setdefault(record.batch, []).append(_last(record))
    values = {TITLES[n]: accuracies[n] for n in OVER_GPUS if n in accuracies}
    constant = {TITLES[n]: accuracies[n][SMALL] for n in ('gn', 'sn-in-ln') if n in accuracies}
    draw_lines(values, constant, 'images per GPU', 'top-1 accuracy (%)', folder / 'accuracy.png')
    sn = [record for record in records if record.variant == 'sn']
    parts = list(sn[0].ratios) if sn else []
    draw_ratios(sn, parts, folder / 'ratios.png', 'images per GPU')


def _is_reference(record: Record) -> bool:
    return record.variant == 'sn' and record.batch == 2


def _title(record: Record) -> tuple[str]:
    return (TITLES[record.variant],)


def _last(record: Record) -> float:
    return record.metrics[ACCURACY][-1]


def _gpu_table(records: Sequence[Record]) -> str:
    def column(per_gpu: int) -> Column:
        return lambda group: spread(_last(r) for r in group if r.batch == per_gpu)

    return table(records, ['norm'], _title, {str(n): column(n) for n in PER_GPU})


def _setting_table(records: Sequence[Record]) -> str:
    """Return the mean ratios, with `gn` in the column of the scope that it replaces."""

    def column(kind: str, scopes: Sequence[str]) -> Column:
        def cell(group: Sequence[Record]) -> str:
            ratios = [record.ratios['all'][kind] for record in group]
            return spread((r[s] for r in ratios for s in scopes if s in r), digits=3)

        return cell

    columns = {
        f'{symbol} {"/".join(scopes)}': column(kind, scopes)
        for kind, symbol in (('mean', 'w'), ('var', 'w′'))
        for scopes in (('in',), ('ln', 'gn'), ('bn',))
    }
    return table(records, ['setting'], _title, columns)


def _epoch_table(records: Sequence[Record]) -> str:
    epochs = range(len(records[0].metrics[ACCURACY]))
    columns: dict[str, Column] = {
        f'epoch {i + 1}': lambda group, i=i: spread(r.metrics[ACCURACY][i] for r in group)
        for i in epochs
    }
    titles = ('norm or setting', 'images per GPU', 'seed')
    return table(records, titles, lambda r: (*_title(r), str(r.batch), str(r.seed)), columns)
