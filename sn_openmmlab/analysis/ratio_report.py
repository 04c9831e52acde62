"""The table and the figures of the ratios of several networks, written into a folder."""

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from sn_openmmlab.analysis.bar_figures import networks_figure, parts_figure
from sn_openmmlab.analysis.course_figure import course_figure
from sn_openmmlab.analysis.layer_figure import layers_figure, same_layers
from sn_openmmlab.analysis.ratio_sources import Source
from sn_openmmlab.analysis.ratio_table import Networks, csv_table, json_table
from sn_openmmlab.errors import UsageError


def check_folder(folder: Path) -> None:
    """Raise UsageError if files cannot be written into a folder, which need not exist."""
    try:
        path = next(path for path in (folder, *folder.parents) if path.exists())
    except OSError as error:
        raise UsageError(
            f'{folder} cannot be used: {error.strerror}: name another --out.'
        ) from error
    if not path.is_dir():
        raise UsageError(f'{path} is a file, not a folder: name another --out.')
    if not os.access(path, os.W_OK):
        raise UsageError(f'{path} is write-protected: name another --out.')


def write_ratio_report(sources: Sequence[Source], folder: Path) -> list[Path]:
    """Write the table and the figures of ratios into a folder.

    - `importance_ratios.csv` and `importance_ratios.json`: the table.
    - `parts.png`: the averages by part, after Fig. 1(a) of the paper.
    - `networks.png`: the averages over all layers side by side, after Fig. 4; from two networks on.
    - `layers.png`: all layers, after Fig. 7 and 9; `layers_LABEL.png` for each network if they have
      different layers.
    - `course.png`: the course over the training; if one of them is a run of which it is known.

    Args:
        sources: the networks.
        folder: is made if it is missing. Other files in it stay.

    Returns:
        The files that were written.

    Raises:
        UsageError: a file cannot be written. Nothing is written then.
    """
    networks = {source.label: source.layers for source in sources}
    courses = {s.label: s.course for s in sources if len(s.course) > 1}
    tables = {'importance_ratios.csv': csv_table, 'importance_ratios.json': json_table}
    figures = {'parts.png': parts_figure(networks), **_layers_figures(networks)}
    if len(networks) > 1:
        figures['networks.png'] = networks_figure(networks)
    if courses:
        figures['course.png'] = course_figure(courses)
    try:
        return _write({name: table(networks) for name, table in tables.items()}, figures, folder)
    except OSError as error:
        raise UsageError(f'nothing was written to {folder}: {error.strerror}.') from error


def _layers_figures(networks: Networks) -> dict[str, Figure]:
    """Return one figure by its file name, or one for each network if they have different layers."""
    if same_layers(networks):
        return {'layers.png': layers_figure(networks)}
    figures: dict[str, Figure] = {}
    for number, (label, layers) in enumerate(networks.items(), 1):
        name = f'layers_{_slug(label)}.png'
        while name in figures:
            name = f'layers_{number}.png'
            number += 1
        figures[name] = layers_figure({label: layers})
    return figures


def _slug(label: str) -> str:
    # The name of a file has at most 255 bytes.
    return re.sub(r'[^\w.-]+', '_', label).strip('_')[:50]


def _write(texts: Mapping[str, str], figures: Mapping[str, Figure], folder: Path) -> list[Path]:
    for name in (*texts, *figures):
        if (folder / name).is_dir():
            raise UsageError(f'{folder / name} is a folder: remove it, or name another --out.')
    folder.mkdir(parents=True, exist_ok=True)
    # Beside the results, so that a full disk is met before the first of them is in place.
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        for name, text in texts.items():
            Path(scratch, name).write_text(text, encoding='utf-8', errors='replace')
        for name, figure in figures.items():
            figure.savefig(Path(scratch, name))
        for name in (*texts, *figures):
            os.replace(Path(scratch, name), folder / name)
    return [folder / name for name in (*texts, *figures)]
