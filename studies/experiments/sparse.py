"""The experiment on sparse SN: trained networks before, right after and after fine-tuning."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mmengine.config import Config

from sn_openmmlab.analysis.work_dir import newest_checkpoint
from studies.experiments import claims_runs
from studies.experiments.claims_runs import STEPS_PER_EPOCH, training_config
from studies.experiments.command_line import TRAIN
from studies.experiments.plan import Run
from studies.experiments.pool import train_missing
from studies.experiments.records import Record
from studies.experiments.statistics_hook import BATCH_AVERAGES
from studies.presentation.experiment_tables import ACCURACY, NONE, SYMBOLS, page, spread
from studies.presentation.figures import draw_points
from studies.presentation.markdown import Column, group_by, table

PER_GPU = (2, 32)
TITLES = {'dense': 'dense', 'sparse': 'sparse'}
# Before the first iteration and after the last.
POINTS = (0, 1)
STAGES = ('before fine-tuning', 'after fine-tuning')
_BATCHES = 100
_METRIC = f'{BATCH_AVERAGES["mean"]}/{ACCURACY}'


def fine_tuning_config(per_gpu: int) -> Config:
    """Return the config of all runs: an epoch more, from a tenth of the learning rate to 0."""
    config = training_config('sn', per_gpu)
    config.custom_imports.imports.append('studies.experiments.statistics_hook')
    config.custom_hooks = [
        dict(
            type='StatisticsHook',
            momenta=(),
            points=POINTS,
            batches=_BATCHES,
            variances=('mean',),
        )
    ]
    rate = config.optim_wrapper.optimizer.lr / 10
    # The hook evaluates instead.
    epochs = {'max_epochs': 1, 'train_cfg.max_epochs': 1, 'train_cfg.val_begin': 2}
    config.merge_from_dict({**epochs, 'optim_wrapper.optimizer.lr': rate})
    config.param_scheduler = dict(
        type='LinearLR',
        start_factor=1,
        end_factor=0.01,
        by_epoch=False,
        begin=0,
        end=STEPS_PER_EPOCH,
    )
    return config


def starts(runs: Iterable[Run]) -> list[Run]:
    """Return those of the claims' runs that are fine-tuned, by images per GPU."""
    found = [run for run in runs if run.variant == 'sn' and run.batch in PER_GPU]
    return sorted(found, key=lambda run: run.batch)


def fine_tunings(trained: Iterable[tuple[Run, Path]], work_dir: Path) -> list[Run]:
    """Return a sparse and a dense run from the checkpoint of each training; see `prepare`."""
    return [
        Run(
            variant,
            start.batch,
            start.seed,
            str(_file(variant, start.batch, work_dir)),
            {'randomness.seed': start.seed, 'load_from': str(checkpoint)},
        )
        for start, checkpoint in trained
        for variant in TITLES
    ]


def prepare(work_dir: Path) -> list[Run]:
    """Train what is missing of the networks with SN of the claims, and return the runs.

    Raises:
        UsageError: the folder cannot be written or is in use, CIFAR-10 is missing, or a training
            failed.
    """
    trained = starts(claims_runs.prepare(work_dir))
    train_missing(trained, TRAIN, work_dir, jobs=2)
    for per_gpu in PER_GPU:
        config = fine_tuning_config(per_gpu)
        config.dump(_file('dense', per_gpu, work_dir))
        # Before the hook that evaluates.
        config.custom_hooks.insert(0, dict(type='SparsifyHook', begin=0))
        config.dump(_file('sparse', per_gpu, work_dir))
    return fine_tunings(
        ((run, newest_checkpoint(work_dir / run.name)) for run in trained), work_dir
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
    return page('Sparse SN on CIFAR-10', records, machine, parts)


def draw_figures(records: Sequence[Record], folder: Path) -> None:
    """Draw `accuracy.png`: each seed before and after fine-tuning, sparse and dense."""
    groups = group_by(records, lambda record: '{}, {} per GPU'.format(*_title(record)))
    values = {
        f'{title}, {stage}': [record.metrics[_METRIC][point] for record in group]
        for title, group in groups.items()
        for point, stage in enumerate(STAGES)
    }
    draw_points(values, 'top-1 accuracy (%)', folder / 'accuracy.png')


def _file(variant: str, per_gpu: int, work_dir: Path) -> Path:
    return work_dir / f'{variant}_b{per_gpu}.py'


def _title(record: Record) -> tuple[str, str]:
    return TITLES[record.variant], str(record.batch)


def _accuracy_table(records: Sequence[Record]) -> str:
    def column(point: int, form: Any) -> Column:
        return lambda group: form([record.metrics[_METRIC][point] for record in group])

    columns = {}
    for point, stage in enumerate(STAGES):
        columns[stage] = column(point, spread)
        columns[f'each seed {stage.split()[0]}'] = column(point, _each)
    return table(records, ['SN', 'images per GPU'], _title, columns)


def _each(values: Sequence[float]) -> str:
    return ', '.join(f'{value:.1f}' for value in values)


def _choice_table(records: Sequence[Record]) -> str:
    def share(kind: str, scope: str) -> Column:
        return lambda group: spread((r.ratios['all'][kind][scope] for r in group), digits=2)

    if not records:
        return NONE
    columns = {
        f'{symbol} {scope}': share(kind, scope)
        for kind, symbol in SYMBOLS.items()
        for scope in records[0].ratios['all'][kind]
    }
    return table(records, ['images per GPU'], lambda record: (str(record.batch),), columns)
