"""The command from_batch_norm on trainings that are already finished."""

import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from studies.experiments import digit_classifier, from_batch_norm, records
from studies.experiments.plan import Run


@pytest.fixture
def run_from_batch_norm(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], None]]:
    """A function that runs the command from the root of the repository."""
    monkeypatch.chdir(repo)
    arguments = ('--out', tmp_path / 'out', '--work-dir', tmp_path / 'work')
    monkeypatch.setattr(sys, 'argv', ['from_batch_norm.py', *map(str, arguments)])
    monkeypatch.setattr('signal.signal', lambda *_: None)
    threads = torch.get_num_threads()
    yield lambda: runpy.run_module('studies.from_batch_norm', run_name='__main__')
    torch.set_num_threads(threads)


def test_finished_runs_become_records_tables_and_a_picture(
    run_from_batch_norm: Callable,
    make_run: Callable[..., Run],
    finish: Callable[[Run, Path], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    runs = [make_run(variant, 2, seed) for variant in ('bn', 'sn') for seed in (0, 1)]
    for run in runs:
        finish(run, tmp_path / 'work')
    monkeypatch.setattr(from_batch_norm, 'prepare', lambda work_dir: runs)
    run_from_batch_norm()
    names = {file.name for file in (tmp_path / 'out').iterdir()}
    assert names == {'ap.png', 'runs.json', 'tables.md'}
    assert len(records.read_records(tmp_path / 'out' / 'runs.json')[0]) == 4
    assert capsys.readouterr().out.endswith((tmp_path / 'out' / 'tables.md').read_text())


def test_classifier_of_another_training_stops_before_any_fine_tuning(
    run_from_batch_norm: Callable, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / 'work').mkdir()
    file = tmp_path / 'work' / 'classifier.pth'
    torch.save({'state_dict': {}, 'meta': {'training': {'scenes': 1}}}, file)
    with pytest.raises(SystemExit) as caught:
        run_from_batch_norm()
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith(f'error: {file} is not the classifier of the exp')
    assert not list((tmp_path / 'work').glob('*_s0'))
    assert digit_classifier.Training().scenes != 1
