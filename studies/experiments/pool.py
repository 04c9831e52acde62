"""Training the runs of an experiment, several at a time, each in its own process."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sn_openmmlab.errors import UsageError
from studies.experiments.folders import done_file, is_finished
from studies.experiments.lock import locked
from studies.experiments.plan import Run
from studies.presentation.output import make_folder


def threads_each(jobs: int) -> int:
    """Return the threads per training if `jobs` trainings share this machine's cores."""
    linux = hasattr(os, 'sched_getaffinity')
    cores = len(os.sched_getaffinity(0)) if linux else os.cpu_count() or 1
    return max(1, cores // jobs)


def train_missing(runs: Sequence[Run], script: Path, work_dir: Path, jobs: int) -> None:
    """Train the unfinished runs from their beginning, and report on stdout.

    Args:
        runs: with different names; the log of each is `NAME.log` beside its work folder.
        script: tools/train.py.
        work_dir: the folder of the work folders, one per run.
        jobs: the number of trainings at a time, at least 1.

    Raises:
        UsageError: `work_dir` or a folder in it cannot be written, or is in use; a finished run was
            trained with other settings; or a training failed, which ends the others too.
    """
    make_folder(work_dir)
    if all(is_finished(run, work_dir) for run in runs):
        # Another command may train others in the same folder.
        print(f'{len(runs)} of {len(runs)} runs are already finished.', flush=True)
        return
    with locked(work_dir) as lock:
        waiting = [run for run in runs if not is_finished(run, work_dir)]
        for run in waiting:
            _check_place(work_dir / run.name)
        print(f'{len(runs) - len(waiting)} of {len(runs)} runs are already finished.', flush=True)
        _train(waiting, script, work_dir, jobs, lock)


def _check_place(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UsageError(f'{folder} must be a folder for a training, but is not: remove it.')


def _train(waiting: list[Run], script: Path, work_dir: Path, jobs: int, lock: int) -> None:
    under_way: list[tuple[Run, subprocess.Popen]] = []
    try:
        while waiting or under_way:
            while waiting and len(under_way) < jobs:
                run = waiting.pop(0)
                under_way.append((run, _start(run, script, work_dir, jobs, lock)))
            for run, process in list(under_way):
                if process.poll() is not None:
                    under_way.remove((run, process))
                    _finish(run, process.returncode, work_dir)
            time.sleep(0.1)
    finally:
        for _, process in under_way:
            process.terminate()
        for _, process in under_way:
            process.wait()


def _start(run: Run, script: Path, work_dir: Path, jobs: int, lock: int) -> subprocess.Popen:
    folder = work_dir / run.name
    try:
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir()
        log = _log(run, work_dir).open('w')
    except OSError as error:
        raise UsageError(f'the folder of {run.name} cannot be written: {error}.') from error
    options = [f'{key}={value}' for key, value in run.options.items()]
    with log:
        print(f'{run.name} starts; its log is {log.name}', flush=True)
        return subprocess.Popen(
            [sys.executable, script, run.config, '--work-dir', folder, '--cfg-options', *options],
            env={**os.environ, 'OMP_NUM_THREADS': str(threads_each(jobs))},
            stdout=log,
            stderr=subprocess.STDOUT,
            # A training that outlives a killed command keeps the folder locked.
            pass_fds=[lock],
        )


def _finish(run: Run, code: int, work_dir: Path) -> None:
    if code:
        log = _log(run, work_dir)
        last = (log.read_text(errors='replace').strip().splitlines() or ['nothing'])[-1]
        raise UsageError(
            f'the training {run.name} ended with exit code {code}; its log {log} ends with: {last}'
        )
    done_file(run, work_dir).touch()
    print(f'{run.name} is finished', flush=True)


def _log(run: Run, work_dir: Path) -> Path:
    return work_dir / f'{run.name}.log'
