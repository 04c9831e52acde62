"""Training the runs of an experiment, several at a time, each in a process of its own."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sn_openmmlab.errors import UsageError
from sn_openmmlab.experiments.folders import done_file, is_finished
from sn_openmmlab.experiments.plan import Run


def threads_each(jobs: int) -> int:
    """The threads of each of ``jobs`` trainings that share this machine's cores."""
    linux = hasattr(os, 'sched_getaffinity')
    cores = len(os.sched_getaffinity(0)) if linux else os.cpu_count() or 1
    return max(1, cores // jobs)


def train_missing(runs: Sequence[Run], script: Path, work_dir: Path, jobs: int) -> None:
    """Train the runs that are not finished, from their beginning, and say so on stdout.

    Args:
        runs: with names that differ; each has its log beside its work folder, ``NAME.log``.
        script: tools/train.py.
        work_dir: holds a work folder per run.
        jobs: how many train at a time, at least 1.

    Raises:
        UsageError: ``jobs`` is below one; a finished run was trained otherwise than planned; a
            training failed, upon which the others that are under way are ended too.
    """
    if jobs < 1:
        raise UsageError(f'at least one training must run at a time, not {jobs}: give --jobs 1.')
    waiting = [run for run in runs if not is_finished(run, work_dir)]
    print(f'{len(runs) - len(waiting)} of {len(runs)} runs are finished already.', flush=True)
    under_way: list[tuple[Run, subprocess.Popen]] = []
    try:
        while waiting or under_way:
            while waiting and len(under_way) < jobs:
                run = waiting.pop(0)
                under_way.append((run, _start(run, script, work_dir, jobs)))
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


def _start(run: Run, script: Path, work_dir: Path, jobs: int) -> subprocess.Popen:
    folder = work_dir / run.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    options = [f'{key}={value}' for key, value in run.options.items()]
    with _log(run, work_dir).open('w') as log:
        print(f'{run.name} starts; its log is {log.name}', flush=True)
        return subprocess.Popen(
            [sys.executable, script, run.config, '--work-dir', folder, '--cfg-options', *options],
            env={**os.environ, 'OMP_NUM_THREADS': str(threads_each(jobs))},
            stdout=log,
            stderr=subprocess.STDOUT,
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
