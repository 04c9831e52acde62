"""The experiment on sparse SN: trained networks before, right after and after fine-tuning."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmengine.config import Config

from sn_openmmlab.analysis.work_dir import newest_checkpoint
from studies.experiments import batch_average
from studies.experiments.command_line import TRAIN
from studies.experiments.plan import Run
from studies.experiments.pool import train_missing
from studies.experiments.records import Record
from studies.experiments.statistics_hook import BATCH_AVERAGES
from studies.presentation.experiment_tables import ACCURACY, NONE, SYMBOLS, page, spread
from studies.presentation.figures import draw_points
from studies.presentation.markdown import Column, group_by, table

TASK = batch_average.CIFAR
SEEDS = TASK.seeds[:1]
TITLES = {'dense': 'dense', 'sparse': 'sparse'}
# Before the first iteration and after the last.
POINTS = (0, 1)
STAGES = ('before fine-tuning', 'after fine-tuning')
_IMAGES = range(0, 50000, 20)
_METRIC = f'{BATCH_AVERAGES["mean"]}/{ACCURACY}'


def fine_tuning_config() -> Config:
    """Return the config of all runs: half an epoch more, from a tenth of the learning rate."""
    config = batch_average.course_config(TASK, 'sn')
    config.train_dataloader.dataset.indices = _IMAGES
    config.optim_wrapper.optimizer.lr /= 10
    epochs = {'max_epochs': 1, 'train_cfg.max_epochs': 1, 'train_cfg.val_begin': 2}
    config.merge_from_dict({**epochs, 'param_scheduler.T_max': 1})
    config.custom_hooks[0].update(momenta=(), points=POINTS, variances=('mean',))
    return config


def fine_tunings(starts: Mapping[int, Path], work_dir: Path) -> list[Run]:
    """Return a sparse and a dense run from the checkpoint of each seed; see `prepare`."""
    return [
        Run(
            variant,
            TASK.batch,
            seed,
            str(work_dir / f'{variant}.py'),
            {'randomness.seed': seed, 'load_from': str(start)},
        )
        for seed, start in starts.items()
        for variant in TITLES
    ]


def prepare(work_dir: Path) -> list[Run]:
    """Train what is missing of the networks with SN of the other study, and return the runs.

    Raises:
        UsageError: the folder cannot be written or is in use, the demo data are missing, or a
            training failed.
    """
    trained = [run for run in batch_average.prepare(work_dir) if _is_start(run)]
    train_missing(trained, TRAIN, work_dir, jobs=1)
    config = fine_tuning_config()
    config.dump(work_dir / 'dense.py')
    # Before the hook that evaluates.
    config.custom_hooks.insert(0, dict(type='SparsifyHook', begin=0))
    config.dump(work_dir / 'sparse.py')
    return fine_tunings(
        {run.seed: newest_checkpoint(work_dir / run.name) for run in trained}, work_dir
    )


def all_tables(records: Sequence[Record], machine: Mapping[str, Any]) -> str:
    """Return every table of the experiment as a Markdown page."""
    sparse = [record for record in records if record.variant == 'sparse']
    parts = [
        '## Top-1 accuracy (%)',
        _accuracy_table(records),
        '## The share of the layers whose choice is each scope',
        _choice_table(sparse),
    ]
    return page('Sparse SN on CIFAR-10, 2 images a step', records, machine, parts)


def draw_figures(records: Sequence[Record], folder: Path) -> None:
    """Draw `accuracy.png`: each seed before and after fine-tuning, sparse and dense."""
    groups = group_by(records, lambda record: TITLES[record.variant])
    values = {
        f'{title}, {stage}': [record.metrics[_METRIC][point] for record in group]
        for title, group in groups.items()
        for point, stage in enumerate(STAGES)
    }
    draw_points(values, 'top-1 accuracy (%)', folder / 'accuracy.png')


def _is_start(run: Run) -> bool:
    return run.variant == f'{TASK.name}-sn' and run.seed in SEEDS


def _accuracy_table(records: Sequence[Record]) -> str:
    def column(point: int, form: Any) -> Column:
        return lambda group: form([record.metrics[_METRIC][point] for record in group])

    columns = {}
    for point, stage in enumerate(STAGES):
        columns[stage] = column(point, spread)
        columns[f'each seed {stage.split()[0]}'] = column(point, _each)
    return table(records, ['SN'], lambda record: (TITLES[record.variant],), columns)


def _each(values: Sequence[float]) -> str:
    return ', '.join(f'{value:.1f}' for value in values)


def _choice_table(records: Sequence[Record]) -> str:
    def share(kind: str, scope: str) -> Column:
        return lambda group: f'{group[0].ratios["all"][kind][scope]:.2f}'

    if not records:
        return NONE
    columns = {
        f'{symbol} {scope}': share(kind, scope)
        for kind, symbol in SYMBOLS.items()
        for scope in records[0].ratios['all'][kind]
    }
    return table(records, ['seed'], lambda record: (str(record.seed),), columns)
