"""The growth of the cost as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from studies.benchmarks.baselines import BASELINE, FUSED


def draw_growth(records: Sequence[dict[str, Any]], title: str, file: Path) -> None:
    """Draw milliseconds over elements, both on logarithmic axes, and write ``file``.

    Args:
        records: the results of :func:`~studies.benchmarks.growth.measure_growth`.
        title: what was measured, and on what.
        file: the picture to write.
    """
    figure = Figure(figsize=(6, 4), layout='constrained')
    axes = figure.subplots()
    elements = [record['elements'] for record in records]
    for name in (BASELINE, FUSED):
        axes.plot(elements, [r['milliseconds'][name] for r in records], marker='o', label=name)
    largest = records[-1]
    slope = largest['milliseconds'][FUSED] / largest['elements']
    axes.plot(elements, [slope * n for n in elements], ':', color='grey', label='proportional')
    axes.set(xscale='log', yscale='log', xlabel='elements of the input', title=title)
    axes.set_ylabel('forward + backward (ms)')
    axes.grid(alpha=0.3)
    axes.legend()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
