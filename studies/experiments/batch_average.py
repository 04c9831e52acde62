"""The experiment on batch average: both kinds of statistics over the course of trainings."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from studies.experiments import claims_runs
from studies.experiments.plan import Run
from studies.experiments.records import Record
from studies.experiments.statistics_hook import BATCH_AVERAGES
from studies.presentation.course import Course, course_table, difference_table, draw_courses
from studies.presentation.experiment_tables import ACCURACY, page
from studies.presentation.markdown import group_by

PER_GPU = (1, 2, 32)
NORMS = ('sn', 'bn')
_POINTS = tuple((i + 1) / claims_runs.EPOCHS for i in range(claims_runs.EPOCHS))


def prepare(work_dir: Path) -> list[Run]:
    """Write the configs that the runs read, and return those of the claims that are compared."""
    return compared(claims_runs.prepare(work_dir))


def compared(runs: Iterable[Run]) -> list[Run]:
    """Return those of the claims' runs that are compared, by images per GPU."""
    found = [run for run in runs if run.variant in NORMS and run.batch in PER_GPU]
    return sorted(found, key=lambda run: run.batch)


def all_tables(records: Sequence[Record], machine: Mapping[str, Any]) -> str:
    """Return every table of the experiment as a Markdown page."""
    parts = []
    for course, groups in _courses(records):
        parts += [
            f'## {course.title}: {course.label}',
            course_table(course, groups),
            f'## Difference from batch average: {course.title}',
            difference_table(course, groups, BATCH_AVERAGES['mean']),
        ]
    heading = 'Batch average and moving averages over the course of training'
    return page(heading, records, machine, parts)


def draw_figures(records: Sequence[Record], folder: Path) -> None:
    """Draw `course.png`: the accuracy over the training, by images per GPU, norm and statistics."""
    draw_courses(_courses(records), folder / 'course.png')


def _courses(records: Sequence[Record]) -> list[tuple[Course, dict[str, list[Record]]]]:
    """Return the records of each norm, for each number of images per GPU."""
    return [
        (_course(per_gpu), group_by(group, lambda record: record.variant.upper()))
        for per_gpu, group in group_by(records, lambda record: record.batch).items()
    ]


def _course(per_gpu: int) -> Course:
    title = f'{per_gpu} {"image" if per_gpu == 1 else "images"} per GPU'
    return Course(title, ACCURACY, 'top-1 accuracy (%)', 1, _POINTS)
