"""How the ratios of a run changed while it trained, as logged scalars or in its checkpoints."""

import re
from collections.abc import Sequence
from pathlib import Path

from sn_openmmlab.analysis.checkpoint_ratios import checkpoint_ratios
from sn_openmmlab.analysis.importance import LayerRatios, Ratios, mean_ratios
from sn_openmmlab.analysis.scalars import read_scalars
from sn_openmmlab.checkpoints.files.safe_loading import read_checkpoint
from sn_openmmlab.checkpoints.names import about
from sn_openmmlab.scopes import SCOPES

# The averages of parts and, beside them, the ratios of layers: NAME/part/mean/in.
RATIO = 'importance_ratio'
_OF_LAYER = f'{RATIO}_of_layer'
_NAME = re.compile(rf'{RATIO}/(.+)/(mean|var)/({"|".join(SCOPES)})')

# By the number of iterations trained.
Course = dict[int, Ratios]


def ratio_scalars(rows: Sequence[LayerRatios], layers: bool = False) -> dict[str, float]:
    """Return ratios as scalars by the names under which `ImportanceRatiosHook` logs them.

    Args:
        rows: the ratios of a network.
        layers: whether to add those of each layer to the averages by part and over all layers.
    """
    scalars = {
        f'{RATIO}/{part}/{kind}/{scope}': ratio
        for part, kinds in mean_ratios(rows).items()
        for kind, ratios in kinds.items()
        for scope, ratio in ratios.items()
    }
    for row in rows if layers else ():
        # Loggers allow few signs besides letters in a name.
        name = row.name.replace(' (group ', '.group').removesuffix(')')
        for kind, ratios in (('mean', row.mean), ('var', row.var)):
            for scope, ratio in zip(row.scopes, ratios, strict=True):
                scalars[f'{_OF_LAYER}/{name}/{kind}/{scope}'] = ratio
    return scalars


def read_course(work_dir: str | Path) -> Course:
    """Return the ratios over the course of a run, averaged by part and over all layers (`'all'`).

    They are those that `ImportanceRatiosHook` logged. If it was not used, they are those of the
    checkpoints `epoch_*.pth` and `iter_*.pth`.

    Args:
        work_dir: the work folder of the run.

    Raises:
        UsageError: a log or a checkpoint cannot be read, or a checkpoint has no SN.
    """
    return _logged(Path(work_dir)) or _saved(Path(work_dir))


def _logged(work_dir: Path) -> Course:
    course: Course = {}
    for file in sorted(work_dir.glob('*/vis_data/scalars.json')):
        new = _read_scalars(file)
        # A continuation repeats what came after the checkpoint from which it started.
        start = min(new, default=float('inf'))
        course = {step: ratios for step, ratios in course.items() if step < start} | new
    return course


def _read_scalars(file: Path) -> Course:
    course: Course = {}
    for entry in read_scalars(file):
        for name, value in entry.items():
            if found := _NAME.fullmatch(name):
                part, kind, scope = found.groups()
                kinds = course.setdefault(entry['step'], {}).setdefault(part, {})
                kinds.setdefault(kind, {})[scope] = value
    return course


def _saved(work_dir: Path) -> Course:
    course: Course = {}
    for file in (*work_dir.glob('epoch_*.pth'), *work_dir.glob('iter_*.pth')):
        checkpoint = read_checkpoint(file)
        meta = checkpoint.get('meta')
        step = meta.get('iter') if isinstance(meta, dict) else None
        if isinstance(step, int):
            with about(file):
                course[step] = mean_ratios(checkpoint_ratios(checkpoint))
    return dict(sorted(course.items()))
