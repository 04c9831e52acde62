"""The experiment on batch average: several running statistics over the course of trainings."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from studies.experiments.plan import SEEDS, Run
from studies.experiments.records import Record
from studies.experiments.statistics_hook import BATCH_AVERAGES
from studies.presentation.course import Course, course_table, difference_table, draw_courses
from studies.presentation.experiment_tables import ACCURACY, AP, page
from studies.presentation.markdown import group_by
from studies.presentation.output import make_folder

# Of our layers, and of the authors' detection code.
MOMENTA = (0.1, 0.003)
POINTS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1)
NORMS = ('sn', 'bn')


@dataclass(frozen=True)
class Task:
    """What is trained.

    Attributes:
        name: of the task in the names of its runs.
        base: the config with a place for the norm.
        batch: images that are normalized together, which are those of a step.
        batches: of the batch average.
        variances: of the batch averages.
        seeds: of the runs.
        options: changes to the config by dotted key.
        course: what is measured.
    """

    name: str
    base: str
    batch: int
    batches: int
    variances: tuple[str, ...]
    seeds: tuple[int, ...]
    options: Mapping[str, Any]
    course: Course


# Three epochs of two images a step. The learning rate is the config's, by the linear scaling rule.
CIFAR = Task(
    name='cifar',
    base='configs/classification/cifar10/resnet10_{}_1xb16_cifar10.py',
    batch=2,
    batches=100,
    variances=('mean', 'pooled'),
    seeds=SEEDS[:2],
    options={
        'train_dataloader.batch_size': 2,
        'optim_wrapper.optimizer.lr': 0.1 * 2 / 16,
        'param_scheduler.T_max': 3,
        'max_epochs': 3,
        'train_cfg.max_epochs': 3,
        'default_hooks.logger.interval': 200,
    },
    course=Course('CIFAR-10, 2 images a step', ACCURACY, 'top-1 accuracy (%)', 1, POINTS),
)
# The detector is trained as in the quickstart, and evaluated on every second image for speed.
_ANNOTATIONS = Path('data/demo/annotations/instances_val.json')
_HALF = 'instances_val_half.json'
DETECTOR = Task(
    name='detector',
    base='configs/demo/faster-rcnn_r18_fpn_{}-all_digits.py',
    batch=2,
    batches=40,
    variances=('mean',),
    seeds=SEEDS[:1],
    options={},
    # Before that it finds nothing.
    course=Course('digits, 2 images a step', AP, 'box AP (%)', 100, POINTS[1:]),
)
TASKS = (CIFAR, DETECTOR)


def course_config(task: Task, norm: str) -> Config:
    """Return the config of the runs of a task with a norm."""
    config = Config.fromfile(task.base.format(norm))
    config.merge_from_dict(dict(task.options))
    config.custom_imports.imports = ['sn_openmmlab', 'studies.experiments.statistics_hook']
    config.custom_hooks = [
        dict(
            type='StatisticsHook',
            momenta=MOMENTA,
            points=task.course.points,
            batches=task.batches,
            variances=task.variances,
        )
    ]
    # The hook evaluates instead.
    config.train_cfg.val_begin = config.train_cfg.max_epochs + 1
    return config


def planned_runs(work_dir: Path) -> list[Run]:
    """Return the runs, whose configs are in a folder."""
    return [
        Run(
            f'{task.name}-{norm}',
            task.batch,
            seed,
            str(_config_file(task, norm, work_dir)),
            {'randomness.seed': seed},
        )
        for seed in SEEDS
        for task in TASKS
        for norm in NORMS
        if seed in task.seeds
    ]


def prepare(work_dir: Path) -> list[Run]:
    """Write the configs that the runs read, and return the runs.

    Raises:
        UsageError: the folder cannot be written, or the demo data are missing.
    """
    if not _ANNOTATIONS.is_file():
        raise UsageError(f'{_ANNOTATIONS} is missing: run make data first.')
    make_folder(work_dir)
    _write_half(_ANNOTATIONS, work_dir / _HALF)
    for task in TASKS:
        for norm in NORMS:
            config = course_config(task, norm)
            if task is DETECTOR:
                # Not below the data's root.
                half = str((work_dir / _HALF).resolve())
                config.val_dataloader.dataset.ann_file = config.val_evaluator.ann_file = half
            config.dump(_config_file(task, norm, work_dir))
    return planned_runs(work_dir)


def all_tables(records: Sequence[Record], machine: Mapping[str, Any]) -> str:
    """Return every table of the experiment as a Markdown page."""
    parts = []
    for course, groups in _courses(records):
        number = len({record.seed for group in groups.values() for record in group})
        seeds = f'{number} seed{"s" if number > 1 else ""}'
        title = f'{course.title}: {course.label}, {seeds}'
        parts += [
            f'## {title}',
            course_table(course, groups),
            f'## Difference from batch average: {title}',
            difference_table(course, groups, BATCH_AVERAGES['mean']),
        ]
    heading = 'Batch average and moving averages over the course of training'
    return page(heading, records, machine, parts)


def draw_figures(records: Sequence[Record], folder: Path) -> None:
    """Draw `course.png`: each task's metric over its training, by norm and statistics."""
    draw_courses(_courses(records), folder / 'course.png')


def _courses(records: Sequence[Record]) -> list[tuple[Course, dict[str, list[Record]]]]:
    """Return each task with the records of each norm."""
    found = group_by(records, lambda record: (record.variant.partition('-')[0], record.batch))
    return [
        (task.course, group_by(found[task.name, task.batch], _norm))
        for task in TASKS
        if (task.name, task.batch) in found
    ]


def _norm(record: Record) -> str:
    return record.variant.partition('-')[2].upper()


def _config_file(task: Task, norm: str, work_dir: Path) -> Path:
    return work_dir / f'{task.name}_b{task.batch}_{norm}.py'


def _write_half(source: Path, file: Path) -> None:
    """Write COCO annotations of every second image."""
    data = json.loads(source.read_text())
    data['images'] = data['images'][::2]
    kept = {image['id'] for image in data['images']}
    data['annotations'] = [box for box in data['annotations'] if box['image_id'] in kept]
    file.write_text(json.dumps(data))
