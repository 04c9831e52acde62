"""The curves of a run, from the scalars that mmengine's visualizer writes."""

import json
from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure

Curve = list[tuple[float, float]]

# What mmengine logs beside the metrics of a validation.
_NO_METRICS = ('step', 'time', 'data_time')


def read_curves(file: str | Path) -> tuple[dict[str, Curve], dict[str, Curve]]:
    """Read ``vis_data/scalars.json`` of a run.

    Returns:
        The losses by name over the iteration, and the metrics of the validations by name over the
        epoch.
    """
    losses: dict[str, Curve] = {}
    metrics: dict[str, Curve] = {}
    for line in Path(file).read_text().splitlines():
        entry = json.loads(line)
        if 'loss' in entry:
            curves, names = losses, [name for name in entry if 'loss' in name]
        else:
            curves, names = metrics, [name for name in entry if name not in _NO_METRICS]
        for name in names:
            curves.setdefault(name, []).append((entry['step'], entry[name]))
    return losses, metrics


def draw_curves(
    losses: Mapping[str, Curve], metrics: Mapping[str, Curve], file: str | Path
) -> None:
    """Draw the losses beside the metrics; negative ones stand for 'not measured'."""
    figure = Figure(figsize=(12, 4.5), layout='constrained')
    left, right = figure.subplots(1, 2)
    for axes, curves in ((left, losses), (right, metrics)):
        for name, curve in curves.items():
            points = [point for point in curve if point[1] >= 0]
            if points:
                axes.plot(*zip(*points, strict=True), marker='.', label=name)
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend(fontsize=8)
    left.set(xlabel='iteration', ylabel='loss', ylim=(0, None))
    right.set(xlabel='epoch', ylabel='validation', ylim=(0, None))
    right.xaxis.get_major_locator().set_params(integer=True)
    figure.savefig(file, dpi=130)
