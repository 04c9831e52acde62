"""The tables of the experiments: mean ± sample standard deviation over the seeds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from studies.experiments.records import Record
from studies.presentation.markdown import Column, table

AP = 'coco/bbox_mAP'
METRICS = {'AP': AP, 'AP50': f'{AP}_50', 'AP75': f'{AP}_75'}
# In percent already, unlike AP.
ACCURACY = 'accuracy/top1'
# Of the ratios of the means and of the variances.
SYMBOLS = {'mean': 'w', 'var': 'w′'}

Key = Callable[[Record], tuple[str, ...]]


def spread(values: Iterable[float], scale: float = 1, digits: int = 1) -> str:
    """Return `mean ± sample standard deviation` of values times `scale`; a single one alone.

    No value at all is shown as a dash.
    """
    values = [scale * value for value in values]
    if not values:
        return '-'
    if len(values) == 1:
        return f'{values[0]:.{digits}f}'
    return f'{mean(values):.{digits}f} ± {stdev(values):.{digits}f}'


def metric_table(records: Sequence[Record], titles: Sequence[str], key: Key) -> str:
    """Return box AP after the last epoch in percent, a row per key; AP of each seed too.

    Args:
        records: of at least two seeds per key.
        titles: of the cells of a key.
        key: from a record to the cells that name its row.
    """
    columns = {title: _metric(name) for title, name in METRICS.items()}
    columns['AP of each seed'] = lambda group: ', '.join(
        f'{100 * record.metrics[AP][-1]:.1f}' for record in group
    )
    return table(records, titles, key, columns)


def accuracy_table(records: Sequence[Record], titles: Sequence[str], key: Key) -> str:
    """Return top-1 accuracy after the last epoch in percent, a row per key; of each seed too.

    Args:
        records: of at least two seeds per key.
        titles: of the cells of a key.
        key: from a record to the cells that name its row.
    """
    columns: dict[str, Column] = {
        'accuracy': lambda group: spread(record.metrics[ACCURACY][-1] for record in group),
        'accuracy of each seed': lambda group: ', '.join(
            f'{record.metrics[ACCURACY][-1]:.1f}' for record in group
        ),
    }
    return table(records, titles, key, columns)


def epoch_table(records: Sequence[Record], titles: Sequence[str], key: Key) -> str:
    """Return box AP after each epoch in percent, a row per key."""
    epochs = range(len(records[0].metrics[AP]))
    columns = {f'epoch {epoch + 1}': _metric(AP, epoch) for epoch in epochs}
    return table(records, titles, key, columns)


def batch_ratio_table(records: Sequence[Record], titles: Sequence[str], key: Key) -> str:
    """Return the backbone's last ratios of `'bn'` of the records that have SN there."""
    items = [('backbone', record) for record in records if 'backbone' in record.ratios]
    columns = {
        f'{symbol} of `bn` at the end': _ratio(kind, 'bn') for kind, symbol in SYMBOLS.items()
    }
    return table(items, titles, lambda item: key(item[1]), columns)


# In place of a table whose columns are those of the records.
NONE = 'No such training is finished.'


def ratio_table(records: Sequence[Record]) -> str:
    """Return the learned ratios of one variant (Eq. 5), a row per part of the model and batch."""
    if not records:
        return NONE
    parts = records[0].ratios
    by_batch = sorted(records, key=lambda record: record.batch)
    items = [(part, record) for part in parts for record in by_batch]
    columns = {
        f'{symbol} {scope}': _ratio(kind, scope)
        for kind, symbol in SYMBOLS.items()
        for scope in parts['all'][kind]
    }
    return table(items, ['part', 'batch'], lambda item: (item[0], str(item[1].batch)), columns)


def page(
    title: str, records: Sequence[Record], machine: Mapping[str, Any], parts: Iterable[str]
) -> str:
    """Return a Markdown page of tables and their headings, with the machine below its title."""
    seeds = len({record.seed for record in records})
    over = f'mean ± sample standard deviation over {seeds} seeds' if seeds > 1 else 'one seed'
    head = (
        f'{machine["device"]}, threads of each training: {machine["threads"]}, torch '
        f'{machine["torch"]}; {over}.'
    )
    return '\n\n'.join([f'# {title}', head, *parts])


def _metric(name: str, epoch: int = -1) -> Column:
    return lambda group: spread((record.metrics[name][epoch] for record in group), 100)


def _ratio(kind: str, scope: str) -> Column:
    return lambda items: spread(
        (record.ratios[part][kind][scope] for part, record in items), digits=3
    )
