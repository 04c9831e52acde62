"""The experiment on style transfer: its tables, its curves and its pictures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from sn_openmmlab.analysis.colors import LINES
from studies.experiments.records import Record
from studies.presentation.experiment_tables import page, ratio_table, spread
from studies.presentation.markdown import Column, group_by, table

# Told apart in grey by the dashes.
_LINES = ('-', '--', ':')


def all_tables(records: Sequence[Record], machine: Mapping[str, Any]) -> str:
    """Return every table as a Markdown page."""
    names = {'content': 'test content', 'style': 'test style', 'both': 'test loss'}
    tests: dict[str, Column] = {title: _value(name) for title, name in names.items()}
    tests['both, each seed'] = lambda group: ', '.join(
        f'{record.metrics["test loss"][-1]:.3f}' for record in group
    )
    windows = len(records[0].metrics['loss'])
    places = {'after 1/10': windows // 10, 'after 1/3': windows // 3, 'at the end': windows - 1}
    course = {title: _value('loss', place) for title, place in places.items()}
    tables = [
        '## Losses on the test photographs',
        table(records, ['norm'], _norm, tests),
        '## Both losses in training',
        table(records, ['norm'], _norm, course),
        '## The ratios of SN after the last step',
        ratio_table([record for record in records if record.variant == 'SN']),
    ]
    return page('Style transfer', records, machine, tables)


def draw_losses(records: Sequence[Record], window: int, file: Path) -> None:
    """Draw content and style loss over the steps: mean of the seeds, band of one deviation.

    Args:
        records: of at least two seeds per norm.
        window: the steps that one value of a record is the mean of.
        file: the picture to write.
    """
    figure = Figure(figsize=(10, 4), layout='constrained')
    for axes, loss in zip(figure.subplots(1, 2), ('content', 'style'), strict=True):
        for line, color, (norm, group) in zip(_LINES, LINES, _by_norm(records), strict=False):
            curves = np.array([record.metrics[loss] for record in group])
            steps = window * (np.arange(curves.shape[1]) + 0.5)
            mean, std = curves.mean(0), curves.std(0, ddof=1)
            axes.plot(steps, mean, line, color=color, label=norm)
            axes.fill_between(steps, mean - std, mean + std, color=color, alpha=0.2)
        axes.set(xlabel='step', ylabel=f'{loss} loss', ylim=(0, None))
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(file, dpi=100)


def draw_pictures(
    style: Tensor, photographs: Tensor, stylized: Mapping[str, Tensor], file: Path
) -> None:
    """Draw photographs in a row each, and how each norm stylized them; the style on the left.

    Args:
        style: (3, side, side) in [-1, 1], as all images.
        photographs: (N, 3, side, side).
        stylized: by norm, in the same shape.
        file: the picture to write.
    """
    columns = {'photograph': photographs, **stylized}
    figure = Figure(figsize=(2 * (1 + len(columns)), 2 * len(photographs)), layout='constrained')
    grid = figure.subplots(len(photographs), 1 + len(columns), squeeze=False)
    for axes in grid.flat:
        axes.axis('off')
    _show(grid[0, 0], style, 'style')
    for column, (title, images) in enumerate(columns.items(), start=1):
        for row, image in enumerate(images):
            _show(grid[row, column], image, title if row == 0 else '')
    figure.savefig(file, dpi=90, pil_kwargs={'quality': 85})


def _show(axes: Axes, image: Tensor, title: str) -> None:
    axes.imshow(((image + 1) / 2).permute(1, 2, 0).numpy())
    axes.set_title(title)


def _by_norm(records: Sequence[Record]) -> list[tuple[str, list[Record]]]:
    return list(group_by(records, lambda record: record.variant).items())


def _norm(record: Record) -> tuple[str]:
    return (record.variant,)


def _value(metric: str, place: int = -1) -> Column:
    return lambda group: spread((record.metrics[metric][place] for record in group), digits=3)
