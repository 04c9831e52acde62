"""The curves of a run, from the scalars that mmengine's visualizer logs."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from matplotlib.figure import Figure

from sn_openmmlab.analysis.colors import LINE_STYLES
from sn_openmmlab.analysis.ratio_course import RATIO
from sn_openmmlab.analysis.scalars import read_scalars

Curve = list[tuple[float, float]]

# What mmengine logs beside the metrics of a validation.
_NO_METRICS = ('step', 'time', 'data_time')


def read_curves(files: Iterable[str | Path]) -> tuple[dict[str, Curve], dict[str, Curve]]:
    """Read the `vis_data/scalars.json` of a training and of its continuations.

    Args:
        files: in chronological order. A later one replaces the steps that it repeats.

    Returns:
        The losses by name over the iteration, and the metrics of the validations by name over the
        epoch, or over the iteration in iteration-based trainings.

    Raises:
        UsageError: a file cannot be read, or is damaged.
    """
    losses: dict[str, Curve] = {}
    metrics: dict[str, Curve] = {}
    for file in files:
        for old, new in zip((losses, metrics), _read_file(file), strict=True):
            _continue(old, new)
    return losses, metrics


def _read_file(file: str | Path) -> tuple[dict[str, Curve], dict[str, Curve]]:
    losses: dict[str, Curve] = {}
    metrics: dict[str, Curve] = {}
    for entry in read_scalars(file):
        # What ImportanceRatiosHook logs has a figure of its own.
        own = [name for name in entry if not name.startswith(RATIO)]
        if 'loss' in own:
            curves, names = losses, [name for name in own if 'loss' in name]
        else:
            curves, names = metrics, [name for name in own if name not in _NO_METRICS]
        for name in names:
            curves.setdefault(name, []).append((entry['step'], entry[name]))
    return losses, metrics


def _continue(old: dict[str, Curve], new: dict[str, Curve]) -> None:
    start = min((curve[0][0] for curve in new.values()), default=float('inf'))
    for name in {**old, **new}:
        kept = [point for point in old.get(name, []) if point[0] < start]
        old[name] = kept + new.get(name, [])


def draw_curves(
    losses: Mapping[str, Curve], metrics: Mapping[str, Curve], file: str | Path
) -> None:
    """Draw the losses beside the metrics, without negative values: they mean 'not measured'."""
    figure = Figure(figsize=(12, 4.5), layout='constrained')
    left, right = figure.subplots(1, 2)
    for axes, curves in ((left, losses), (right, metrics)):
        axes.set_prop_cycle(LINE_STYLES)
        for name, curve in curves.items():
            points = [point for point in curve if point[1] >= 0]
            if points:
                axes.plot(*zip(*points, strict=True), marker='.', label=name)
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend(fontsize=9)
    left.set(xlabel='iteration', ylabel='loss', ylim=(0, None))
    right.set(xlabel='epoch (or iteration)', ylabel='validation metric', ylim=(0, None))
    right.xaxis.get_major_locator().set_params(integer=True)
    figure.savefig(file, dpi=130)
