"""The long training of the quickstart's detector, watched from outside."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from studies.benchmarks.process_usage import usage
from studies.experiments.lock import locked
from studies.presentation.experiment_tables import AP
from studies.presentation.output import make_folder

CONFIG = 'configs/demo/faster-rcnn_r18_fpn_sn-all_digits.py'
COLUMNS = ('seconds', 'pss', 'rss', 'files', 'threads', 'cpu', 'iteration', 'load')
# Whatever the length: two hours are sampled every ten seconds.
_SAMPLES = 720
_SHORTEST = 1.0
_SAVE_EVERY = 180.0
# The last epoch, its evaluation and a busy machine.
_GRACE = 3600.0
_TRAINING = 'training'


def soak_config(hours: float) -> Config:
    """Return the config of the quickstart that trains on, at one learning rate, for some hours."""
    config = Config.fromfile(CONFIG)
    config.custom_imports.imports = ['sn_openmmlab', 'studies.experiments.deadline_hook']
    config.custom_hooks = [dict(type='DeadlineHook', seconds=3600 * hours)]
    config.max_epochs = config.train_cfg.max_epochs = 100_000
    config.param_scheduler = config.param_scheduler[:1]
    return config


def soak(
    script: Path, work_dir: Path, hours: float, save: Callable[[dict[str, Any]], None]
) -> None:
    """Train for some hours in a process of its own, and sample from outside what it uses.

    Args:
        script: tools/train.py.
        work_dir: the folder of the training, which is removed if it is there.
        hours: at least; the training ends with its epoch.
        save: gets what has been recorded, every few minutes and at the end.

    Raises:
        UsageError: the folder cannot be written or is in use, or the training failed.
    """
    make_folder(work_dir)
    with locked(work_dir) as lock, _training(script, work_dir, hours, lock) as process:
        samples: list[list[float]] = []
        try:
            for _ in _watch(process, work_dir, hours, samples):
                save(_data(samples, work_dir, hours, None))
        finally:
            save(_data(samples, work_dir, hours, process.poll()))
    if process.returncode:
        raise UsageError(
            f'the training ended with exit code {process.returncode}: see {work_dir}/training.log.'
        )


def _watch(
    process: subprocess.Popen[bytes], work_dir: Path, hours: float, samples: list[list[float]]
) -> Iterator[None]:
    """Sample until the process ends; pause every few minutes, for the caller to save."""
    start = saved = time.monotonic()
    interval = max(_SHORTEST, 3600 * hours / _SAMPLES)
    while process.poll() is None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(interval)
        now = time.monotonic()
        samples += _sample(process.pid, work_dir, now - start)
        if now - start > 3600 * hours + _GRACE:
            raise UsageError(f'the training does not end: see {work_dir}/training.log.')
        if now - saved > _SAVE_EVERY:
            yield
            saved = now


def _sample(pid: int, work_dir: Path, seconds: float) -> Iterator[list[float]]:
    if used := usage(pid):
        values = vars(used)
        found = {
            **values,
            'seconds': round(seconds, 1),
            'cpu': round(used.cpu, 1),
            'iteration': _iteration(work_dir),
            'load': round(os.getloadavg()[0], 2),
        }
        yield [found[name] for name in COLUMNS]


def _iteration(work_dir: Path) -> int:
    """Return the last iteration that was logged."""
    return max((entry['iter'] for entry in _scalars(work_dir) if 'iter' in entry), default=0)


def _scalars(work_dir: Path) -> list[dict[str, Any]]:
    """Return what was logged; the last line may be half-written."""
    files = sorted((work_dir / _TRAINING).glob('*/vis_data/scalars.json'))
    text = files[-1].read_text() if files else ''
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith('\n')]


def _data(
    samples: list[list[float]], work_dir: Path, hours: float, code: int | None
) -> dict[str, Any]:
    """Return what has been recorded; the exit code is None while the training runs."""
    return {
        'config': CONFIG,
        'hours': hours,
        'exit_code': code,
        'box_aps': [entry[AP] for entry in _scalars(work_dir) if AP in entry],
        'columns': COLUMNS,
        'samples': samples,
    }


@contextmanager
def _training(
    script: Path, work_dir: Path, hours: float, lock: int
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the training; end it with the block."""
    folder, config = work_dir / _TRAINING, work_dir / 'soak.py'
    try:
        if folder.exists():
            shutil.rmtree(folder)
        soak_config(hours).dump(config)
        log = (work_dir / 'training.log').open('w')
    except OSError as error:
        raise UsageError(f'{work_dir} cannot be written: {error}.') from error
    with log:
        process = subprocess.Popen(
            [sys.executable, script, config, '--work-dir', folder],
            stdout=log,
            stderr=subprocess.STDOUT,
            # A training that outlives a killed command keeps the folder locked.
            pass_fds=[lock],
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
