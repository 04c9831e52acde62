"""Run the mistakes one by one."""

import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from studies.mistakes.case import Case
from studies.mistakes.configs import TASKS
from studies.mistakes.data import make_data
from studies.mistakes.outcome import Outcome, judge, warnings_of
from studies.mistakes.running import import_toolboxes, run_case
from studies.mistakes.suite import all_cases


def run_suite(sample: int | None = None, seed: int = 0) -> Iterator[tuple[str, Case, Outcome]]:
    """Run all mistakes, and yield the title of their table, each case and what came of it.

    Args:
        sample: run only so many, which are drawn.
        seed: of that draw.

    Raises:
        RuntimeError: a training without a mistake fails.
    """
    cases = [(title, case) for title, part in all_cases().items() for case in part]
    if sample is not None:
        chosen = random.Random(seed).sample(range(len(cases)), sample)
        cases = [cases[i] for i in sorted(chosen)]
    import_toolboxes()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        make_data(folder / 'data')
        usual = {task: _usual(task, folder) for task in {case.task for _, case in cases}}
        for i, (title, case) in enumerate(cases):
            yield title, case, _outcome(case, folder, folder / str(i), usual[case.task])


def _usual(task: str, folder: Path) -> set[str]:
    """Return the warnings of a training without a mistake."""
    assert task in TASKS
    case, place = Case(task, 'nothing', lambda scene: None), folder / task
    ran = run_case(case, folder / 'data', place)
    outcome = judge(case, ran, place, warnings_of(ran, place))
    if outcome.ends != 'trains':
        raise RuntimeError(f'{case.name}: {outcome}: {ran.stderr}')
    return warnings_of(ran, place)


def _outcome(case: Case, folder: Path, place: Path, usual: set[str]) -> Outcome:
    ran = run_case(case, folder / 'data', place)
    outcome = judge(case, ran, place, usual)
    # A folder that is shut cannot be emptied, unless by root.
    for shut in place.rglob('shut'):
        shut.chmod(0o755)
    shutil.rmtree(place)
    return outcome
