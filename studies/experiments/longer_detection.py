"""The experiment on longer trainings of the quickstart's detector at two images a step."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from studies.experiments.plan import SEEDS, Run
from studies.experiments.records import Record
from studies.presentation.course import Course, course_table, draw_courses
from studies.presentation.experiment_tables import AP, page, ratio_table, spread
from studies.presentation.figures import draw_points
from studies.presentation.markdown import Column, group_by, table
from studies.presentation.output import make_folder

NORMS = ('sn', 'gn', 'bn')
# At 0.01 SN had a box AP of 34.6, at 0.02 51.0, at 0.04 55.9 and at 0.08 57.6.
RATES = (0.02, 0.04, 0.08, 0.16)
# Of the trainings that choose the learning rates, which are as long as the quickstart.
PILOT_SEED = 3
_PILOT_EPOCHS, EPOCHS = 4, 12
_BATCH, _BATCHES = 2, 40
# Of our layers, and of the authors' detection code.
_MOMENTA = (0.1, 0.003)
COURSE = Course('digits, 2 images a step', AP, 'box AP (%)', 100, (1 / 4, 1 / 2, 3 / 4, 1))
_ANNOTATIONS = Path('data/demo/annotations/instances_val.json')


def detector_config(norm: str, epochs: int, rate: float) -> Config:
    """Return the config of the quickstart with a norm; the rate falls after 3/4 of the epochs."""
    config = Config.fromfile(f'configs/demo/faster-rcnn_r18_fpn_{norm}-all_digits.py')
    config.optim_wrapper.optimizer.lr = rate
    config.max_epochs = config.train_cfg.max_epochs = epochs
    config.train_cfg.val_interval = epochs
    config.param_scheduler[1].update(milestones=[epochs * 3 // 4], end=epochs)
    return config


def final_config(norm: str, rate: float) -> Config:
    """Return the config of a long training, which is evaluated four times."""
    config = detector_config(norm, EPOCHS, rate)
    config.custom_imports.imports = ['sn_openmmlab', 'studies.experiments.statistics_hook']
    # GN has no running statistics, so one evaluation is enough.
    momenta, variances = (_MOMENTA[:1], ()) if norm == 'gn' else (_MOMENTA, ('mean',))
    config.custom_hooks = [
        dict(
            type='StatisticsHook',
            momenta=momenta,
            points=COURSE.points,
            batches=_BATCHES,
            variances=variances,
        )
    ]
    config.train_cfg.val_begin = EPOCHS + 1
    return config


def pilot_runs(work_dir: Path) -> list[Run]:
    """Return a short training of each norm at each learning rate, whose configs are in a folder."""
    return [
        Run(
            f'{norm}-{rate}',
            _BATCH,
            PILOT_SEED,
            str(work_dir / f'{norm}-{rate}.py'),
            {'randomness.seed': PILOT_SEED},
        )
        for norm in NORMS
        for rate in RATES
    ]


def final_runs(work_dir: Path) -> list[Run]:
    """Return the long trainings, whose configs are in a folder."""
    return [
        Run(norm, _BATCH, seed, str(work_dir / f'{norm}.py'), {'randomness.seed': seed})
        for seed in SEEDS
        for norm in NORMS
    ]


def chosen_rates(records: Sequence[Record]) -> dict[str, float]:
    """Return the learning rate with the highest box AP of each norm; the lower of equal ones."""
    pilots = group_by(filter(_is_pilot, records), lambda record: _norm_and_rate(record)[0])
    return {norm: _best_rate(group) for norm, group in pilots.items()}


def prepare(work_dir: Path) -> list[Run]:
    """Return the short trainings that choose the learning rates.

    Raises:
        UsageError: the folder cannot be written, or the demo data are missing.
    """
    if not _ANNOTATIONS.is_file():
        raise UsageError(f'{_ANNOTATIONS} is missing: run make data first.')
    make_folder(work_dir)
    pilots = pilot_runs(work_dir)
    for run in pilots:
        norm, rate = _norm_and_rate(run)
        detector_config(norm, _PILOT_EPOCHS, rate).dump(run.config)
    return pilots


def follow(work_dir: Path, records: Sequence[Record]) -> list[Run]:
    """Return the long trainings, at the learning rates that the short ones choose."""
    for norm, rate in chosen_rates(records).items():
        final_config(norm, rate).dump(work_dir / f'{norm}.py')
    return final_runs(work_dir)


def all_tables(records: Sequence[Record], machine: Mapping[str, Any]) -> str:
    """Return every table of the experiment as a Markdown page."""
    finals = [record for record in records if not _is_pilot(record)]
    seeds = len({record.seed for record in finals})
    parts = [
        f'## Box AP (%) over the training, {seeds} seeds',
        course_table(COURSE, _by_norm(finals)),
        '## Box AP (%) of each seed at the end',
        _seed_table(finals),
        '## Importance ratios of SN at the end',
        ratio_table([record for record in finals if record.variant == 'sn']),
        f'## Box AP (%) by learning rate after {_PILOT_EPOCHS} epochs, seed {PILOT_SEED}',
        _rate_table([record for record in records if _is_pilot(record)]),
    ]
    return page('Longer trainings of the detector at two images', records, machine, parts)


def draw_figures(records: Sequence[Record], folder: Path) -> None:
    """Draw `course.png`, AP over the training, and `ap.png`, that of each seed at the end."""
    finals = [record for record in records if not _is_pilot(record)]
    if not finals:
        return
    draw_courses([(COURSE, _by_norm(finals))], folder / 'course.png')
    draw_points(_last(finals), COURSE.label, folder / 'ap.png')


def _is_pilot(record: Record) -> bool:
    return '-' in record.variant


def _norm_and_rate(pilot: Run | Record) -> tuple[str, float]:
    norm, rate = pilot.variant.split('-')
    return norm, float(rate)


def _best_rate(pilots: Sequence[Record]) -> float:
    aps = {_norm_and_rate(record)[1]: record.metrics[AP][-1] for record in pilots}
    return max(sorted(aps), key=aps.__getitem__)


def _by_norm(records: Sequence[Record]) -> dict[str, list[Record]]:
    return group_by(records, lambda record: record.variant.upper())


def _last(records: Sequence[Record]) -> dict[str, list[float]]:
    """Return the box AP of each seed at the end in percent, by norm and statistics."""
    found: dict[str, list[float]] = {}
    for norm, group in _by_norm(records).items():
        for record in group:
            for statistics, values in COURSE.values(record).items():
                title = norm if norm == 'GN' else f'{norm}, {statistics}'
                found.setdefault(title, []).append(values[-1])
    return found


def _seed_table(records: Sequence[Record]) -> str:
    columns = {
        'AP': lambda items: spread(items[0][1]),
        'AP of each seed': lambda items: ', '.join(f'{value:.1f}' for value in items[0][1]),
    }
    return table(_last(records).items(), ['norm'], lambda item: item[:1], columns)


def _rate_table(records: Sequence[Record]) -> str:
    def column(rate: float) -> Column:
        return lambda group: spread(
            (r.metrics[AP][-1] for r in group if _norm_and_rate(r)[1] == rate), 100
        )

    columns = {str(rate): column(rate) for rate in RATES}
    return table(records, ['norm'], lambda record: (_norm_and_rate(record)[0].upper(),), columns)
