"""The experiments on variants of SN: ratios in groups, an LSTM, and video."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from examples import lstm_with_sn, video_with_sn
from sn_openmmlab.analysis.importance import LayerRatios, importance_ratios, mean_ratios
from sn_openmmlab.analysis.layer_figure import layers_figure
from studies.experiments.records import Record
from studies.presentation.experiment_tables import ACCURACY, accuracy_table, page, spread
from studies.presentation.figures import draw_accuracy
from studies.presentation.markdown import group_by, table

Records = Mapping[str, Sequence[Record]]
_EPOCHS, _BATCH = 12, 64


def train_groups(seed: int) -> Iterator[Record]:
    """Yield classifiers of digits in images whose SN has one and two groups of ratios."""
    images, _, digits = video_with_sn.load('train', video_with_sn.IMAGES, 1)
    others, _, their_digits = video_with_sn.load('val', video_with_sn.TEST, 1)
    for groups in (1, 2):
        torch.manual_seed(seed)
        network = video_with_sn.Classifier(10, dict(type='SN', num_ratio_groups=groups))
        video_with_sn.train(network, images[:, :, 0], digits, _EPOCHS, _BATCH)
        reached = video_with_sn.accuracy(network, others[:, :, 0], their_digits)
        layers = {row.name: _by_scope(row) for row in importance_ratios(network.backbone)}
        yield Record(str(groups), _BATCH, seed, {ACCURACY: [reached]}, layers)


def train_readers(seed: int) -> Iterator[Record]:
    """Yield LSTMs with LN, GN and SN, as in the example."""
    for norm in lstm_with_sn.NORMS:
        reader, accuracies = lstm_with_sn.train(norm, seed)
        metrics = {ACCURACY: [100 * accuracy for accuracy in accuracies]}
        ratios = mean_ratios(importance_ratios(reader))
        yield Record(norm, lstm_with_sn.BATCH, seed, metrics, ratios)


def train_videos(seed: int) -> Iterator[Record]:
    """Yield the video classifiers of the example with BN, GN and SN."""
    for norm in video_with_sn.NORMS:
        found, network = video_with_sn.compare(norm, seed)
        metrics = {what: [accuracy] for what, accuracy in found.items()}
        yield Record(norm, 16, seed, metrics, mean_ratios(importance_ratios(network)))


PARTS: Mapping[str, Callable[[int], Iterator[Record]]] = {
    'groups': train_groups,
    'lstm': train_readers,
    'video': train_videos,
}


def all_tables(parts: Records, machine: Mapping[str, Any]) -> str:
    """Return every table as a Markdown page."""
    groups, lstm, video = (parts[name] for name in PARTS)
    tables = [
        '## Groups of ratios: accuracy on digits in images (%)',
        accuracy_table(groups, ['groups'], _variant),
        '## Groups of ratios: how far the two groups of a layer are apart',
        table(_gaps(groups), ['layer'], lambda gap: (gap[0],), {'w': _gap(1), 'w′': _gap(2)}),
        '## LSTM: accuracy after the last epoch (%)',
        accuracy_table(lstm, ['norm'], _variant),
        '## LSTM: the ratios of SN after the last epoch',
        table(
            [record for record in lstm if record.variant == 'SN'],
            ['norm'],
            _variant,
            {
                f'{symbol} {scope}': _mean_ratio(kind, scope)
                for kind, symbol in (('mean', 'w'), ('var', 'w′'))
                for scope in ('ln', 'gn')
            },
        ),
        '## Video: accuracy (%)',
        table(video, ['norm'], _variant, {what: _reached(what) for what in video[0].metrics}),
    ]
    return page('Variants of SN', groups, machine, tables)


def draw_figures(parts: Records, folder: Path) -> None:
    """Draw `groups.png`, the ratios of the two groups in the first seed, and `lstm.png`."""
    first = next(record for record in parts['groups'] if record.variant == '2')
    rows = [_layer(name, kinds) for name, kinds in first.ratios.items()]
    layers_figure({'groups': rows}).savefig(folder / 'groups.png')
    norms = group_by(parts['lstm'], lambda record: record.variant)
    draw_accuracy(norms, 'An LSTM that reads digits row by row', folder / 'lstm.png')


def _variant(record: Record) -> tuple[str]:
    return (record.variant,)


def _by_scope(row: LayerRatios) -> dict[str, dict[str, float]]:
    pairs = {'mean': row.mean, 'var': row.var}
    return {kind: dict(zip(row.scopes, ratios, strict=True)) for kind, ratios in pairs.items()}


def _layer(name: str, kinds: Mapping[str, Mapping[str, float]]) -> LayerRatios:
    mean, var = (tuple(kinds[kind].values()) for kind in ('mean', 'var'))
    return LayerRatios(name, tuple(kinds['mean']), mean, var)


def _gaps(records: Sequence[Record]) -> list[tuple[str, float, float]]:
    """Return layer, and largest difference of a ratio between its groups, in w and in w′."""
    gaps = []
    for record in (r for r in records if r.variant == '2'):
        rows = list(record.ratios.items())
        for (name, one), (_, two) in zip(rows[::2], rows[1::2], strict=True):
            apart = (max(abs(one[k][s] - two[k][s]) for s in one[k]) for k in ('mean', 'var'))
            gaps.append((name.partition(' ')[0], *apart))
    return gaps


def _gap(place: int) -> Callable[[list[tuple]], str]:
    return lambda gaps: spread((gap[place] for gap in gaps), digits=3)


def _mean_ratio(kind: str, scope: str) -> Callable[[list[Record]], str]:
    return lambda group: spread((r.ratios['all'][kind][scope] for r in group), digits=3)


def _reached(what: str) -> Callable[[list[Record]], str]:
    return lambda group: spread(record.metrics[what][-1] for record in group)
