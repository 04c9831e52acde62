"""Share trained runs, readers of what they logged, and functions that run a tool."""

import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mmengine.runner import CheckpointLoader

from tests import run_state


@pytest.fixture(scope='session')
def detection_run(
    repo: Path,
    detection_config: Path,
    run_tool: Callable,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Train the tiny detector for one epoch with our tool; return the work folder."""
    work_dir = tmp_path_factory.mktemp('detection_run')
    run_tool(repo / 'tools/train.py', detection_config, '--work-dir', work_dir)
    return work_dir


@pytest.fixture(scope='session')
def segmentation_run(
    repo: Path,
    segmentation_config: Path,
    run_tool: Callable,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Train the tiny segmenter for one epoch with our tool; return the work folder."""
    work_dir = tmp_path_factory.mktemp('segmentation_run')
    run_tool(repo / 'tools/train.py', segmentation_config, '--work-dir', work_dir)
    return work_dir


@pytest.fixture(scope='session')
def classification_run(
    repo: Path,
    classification_config: Path,
    run_tool: Callable,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Train the tiny classifier for one epoch with our tool; return the work folder."""
    work_dir = tmp_path_factory.mktemp('classification_run')
    run_tool(repo / 'tools/train.py', classification_config, '--work-dir', work_dir)
    return work_dir


@pytest.fixture(scope='session')
def logged() -> Callable[[Path], tuple[list[dict], list[dict]]]:
    """Return a function that reads the log of the newest training in a work folder.

    It returns the losses of each iteration and the metrics of each validation, by name.
    """

    def read(work_dir: Path) -> tuple[list[dict], list[dict]]:
        file = max(work_dir.glob('*/vis_data/scalars.json'))
        entries = [json.loads(line) for line in file.read_text().splitlines()]
        trained = [entry for entry in entries if 'loss' in entry]
        validated = [entry for entry in entries if 'loss' not in entry]
        times = ('time', 'data_time', 'step')
        return (
            [{name: value for name, value in e.items() if 'loss' in name} for e in trained],
            [{name: value for name, value in e.items() if name not in times} for e in validated],
        )

    return read


@pytest.fixture(scope='session')
def tested() -> Callable[[Path], dict]:
    """Return a function that reads the metrics of the only test in a work folder."""

    def read(work_dir: Path) -> dict:
        (file,) = work_dir.glob('*/*.json')
        metrics = json.loads(file.read_text())
        return {name: value for name, value in metrics.items() if 'time' not in name}

    return read


@pytest.fixture
def process_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin as in a new process; after the test, undo what a tool changes."""
    # A logger of an earlier test may write to a stream that is closed.
    run_state.forget()
    monkeypatch.setattr(CheckpointLoader, '_schemes', CheckpointLoader._schemes.copy())
    for name in ('TORCH_FORCE_WEIGHTS_ONLY_LOAD', 'TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD'):
        # To be restored, it has to be set once.
        monkeypatch.setenv(name, '')
        monkeypatch.delenv(name)


@pytest.fixture
def fail(
    repo: Path,
    monkeypatch: pytest.MonkeyPatch,
    process_state: None,
    capsys: pytest.CaptureFixture,
    tmp_path: Path,
) -> Callable[..., str]:
    """Return a function that runs a tool in this process and returns its error sentence."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('LOCAL_RANK', '0')
    monkeypatch.delenv('RANK', raising=False)

    def run(tool: str, *args: object) -> str:
        # A run of the same second would take over loggers whose folder is gone.
        run_state.forget()
        monkeypatch.setattr(sys, 'argv', [tool, *map(str, args)])
        with pytest.raises(SystemExit) as caught:
            runpy.run_path(str(repo / 'tools' / tool), run_name='__main__')
        assert caught.value.code == 2
        return check_sentence(capsys.readouterr().err)

    return run


def check_sentence(stderr: str) -> str:
    """Return the sentence of an error; check that stderr has nothing else."""
    assert stderr.startswith('error: ')
    assert stderr.find('\n') == len(stderr) - 1
    assert 'Traceback' not in stderr
    return stderr


@pytest.fixture(scope='session')
def sentence() -> Callable[[str], str]:
    """Return the check that stderr of a tool is one sentence; it returns the sentence."""
    return check_sentence
