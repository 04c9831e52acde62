"""Records summed up over the seeds, as Markdown tables: mean ± sample standard deviation."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, stdev

from studies.experiments.records import Record
from studies.presentation.benchmark_tables import markdown

AP = 'coco/bbox_mAP'


def by_case(records: Iterable[Record]) -> dict[tuple[str, int], list[Record]]:
    """The records by variant and batch, in the order of the first of each."""
    cases: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        cases.setdefault((record.variant, record.batch), []).append(record)
    return cases


def spread(values: Iterable[float], scale: float = 1, digits: int = 1) -> str:
    """``mean ± sample standard deviation`` of at least two values, times ``scale``."""
    values = [scale * value for value in values]
    return f'{mean(values):.{digits}f} ± {stdev(values):.{digits}f}'


def final_table(records: Sequence[Record], metrics: Mapping[str, str]) -> str:
    """Metrics after the last epoch in percent, a row per case; the first of them by seed too.

    Args:
        records: of at least two seeds per case.
        metrics: the metric by the title of its column.
    """
    first = next(iter(metrics.values()))
    rows = []
    for (variant, batch), group in by_case(records).items():
        last = {name: [r.metrics[name][-1] for r in group] for name in metrics.values()}
        by_seed = [f'{100 * value:.1f}' for value in last[first]]
        spreads = [spread(values, 100) for values in last.values()]
        rows.append([variant.upper(), str(batch), *spreads, ', '.join(by_seed)])
    return markdown(['norm', 'batch', *metrics, f'{next(iter(metrics))} of each seed'], rows)


def start_table(
    headings: Sequence[str],
    groups: Mapping[tuple[str, ...], Sequence[Record]],
    metrics: Mapping[str, str],
) -> str:
    """Metrics after the last epoch in percent, a row per group; the first of them by seed too.

    Args:
        headings: what the cells of a group's key are.
        groups: records of at least two seeds each.
        metrics: the metric by the title of its column.
    """
    rows = []
    for cells, group in groups.items():
        last = [[record.metrics[name][-1] for record in group] for name in metrics.values()]
        by_seed = ', '.join(f'{100 * value:.1f}' for value in last[0])
        rows.append([*cells, *(spread(values, 100) for values in last), by_seed])
    return markdown([*headings, *metrics, f'{next(iter(metrics))} of each seed'], rows)


def batch_ratio_table(
    headings: Sequence[str], groups: Mapping[tuple[str, ...], Sequence[Record]]
) -> str:
    """The backbone's ratios of ``'bn'`` after the last epoch, of the groups that have SN there."""
    rows = []
    for cells, group in groups.items():
        ratios = [record.ratios['backbone'] for record in group if 'backbone' in record.ratios]
        if ratios:
            learned = [[part[kind]['bn'] for part in ratios] for kind in ('mean', 'var')]
            rows.append([*cells, *(spread(values, digits=3) for values in learned)])
    return markdown([*headings, 'w of `bn` at the end', 'w′ of `bn` at the end'], rows)


def epoch_table(records: Sequence[Record]) -> str:
    """Box AP after each epoch in percent, a row per case."""
    rows = []
    for (variant, batch), group in by_case(records).items():
        by_epoch = zip(*(record.metrics[AP] for record in group), strict=True)
        rows.append([variant.upper(), str(batch), *(spread(aps, 100) for aps in by_epoch)])
    epochs = range(1, len(records[0].metrics[AP]) + 1)
    return markdown(['norm', 'batch', *(f'epoch {epoch}' for epoch in epochs)], rows)


def ratio_table(records: Sequence[Record]) -> str:
    """The learned ratios of one variant (Eq. 5), a row per part of the model and batch."""
    batches: dict[int, list[Record]] = {}
    for record in sorted(records, key=lambda record: record.batch):
        batches.setdefault(record.batch, []).append(record)
    parts = records[0].ratios
    columns = [(kind, scope) for kind, ratios in parts['all'].items() for scope in ratios]
    rows = [
        [part, str(batch)]
        + [
            spread((r.ratios[part][kind][scope] for r in group), digits=3)
            for kind, scope in columns
        ]
        for part in parts
        for batch, group in batches.items()
    ]
    titles = [f'{"w" if kind == "mean" else "w′"} {scope}' for kind, scope in columns]
    return markdown(['part', 'batch', *titles], rows)
