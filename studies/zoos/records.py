"""The data files of the zoos: a line of JSON for each config, written as soon as it is known."""

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

Record = dict[str, Any]


class Run(NamedTuple):
    """What was run of one zoo, or of the sample that trains, on one stack.

    Attributes:
        stack: ``'onedl'`` or ``'openmmlab'``.
        part: the zoo's toolbox, or ``'steps'``.
        records: as `studies.zoos.survey.survey` or `studies.zoos.trials.try_all` gives them, with
            ``cpu_seconds``.
    """

    stack: str
    part: str
    records: list[Record]


def run_file(folder: Path, stack: str, part: str) -> Path:
    """Return the file of a run."""
    return folder / f'{stack}_{part}.jsonl'


def read_records(file: Path) -> list[Record]:
    """Return the records of a file, none if there is no file."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def read_runs(folder: Path) -> list[Run]:
    """Read all runs of a folder, in the order of their names."""
    files = sorted(folder.glob('*.jsonl'))
    return [Run(*file.stem.split('_'), read_records(file)) for file in files]


def append_records(records: Iterable[Record], file: Path) -> Iterator[Record]:
    """Append each record to a file, with the CPU seconds that it took, and yield it."""
    start = time.process_time()
    for record in records:
        record['cpu_seconds'] = round(time.process_time() - start, 1)
        with file.open('a') as lines:
            lines.write(json.dumps(record) + '\n')
        yield record
        start = time.process_time()
