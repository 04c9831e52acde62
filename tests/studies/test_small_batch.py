"""The command small_batch on trainings that are already finished."""

import json
import runpy
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from matplotlib.image import imread

from studies.experiments import command_line, records, small_batch
from studies.experiments.lock import locked
from studies.experiments.plan import Run


@pytest.fixture
def run_small_batch(
    repo: Path,
    tmp_path: Path,
    make_run: Callable,
    finish: Callable,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., None]:
    """Return a function that runs the command, whose runs are finished in `tmp_path/work`."""
    cases = [('bn', 2), ('sn', 2), ('sn', 1)]
    runs = [make_run(norm, batch, seed) for norm, batch in cases for seed in (0, 1)]
    for run in runs:
        finish(run, tmp_path / 'work')
    monkeypatch.setattr(small_batch, 'prepare', lambda work_dir: runs)
    threads = torch.get_num_threads()

    def run_tool(*arguments: str) -> None:
        arguments = ('--out', tmp_path / 'out', '--work-dir', tmp_path / 'work', *arguments)
        monkeypatch.setattr(sys, 'argv', ['small_batch.py', *map(str, arguments)])
        runpy.run_module('studies.small_batch', run_name='__main__')

    # The command's own handler of SIGTERM would stay for the other tests.
    monkeypatch.setattr('signal.signal', lambda *_: None)
    yield run_tool
    torch.set_num_threads(threads)


def test_finished_runs_become_records_tables_and_pictures(
    run_small_batch: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    run_small_batch('--jobs', '1')
    out = tmp_path / 'out'
    names = {'ap.png', 'ratios.png', 'runs.json', 'tables.md'}
    assert {file.name for file in out.iterdir()} == names
    data = json.loads((out / 'runs.json').read_text())
    assert data['machine']['torch'] == torch.__version__
    written, _ = records.read_records(out / 'runs.json')
    assert [(r.variant, r.batch, r.seed) for r in written[:3]] == [
        ('bn', 2, 0),
        ('bn', 2, 1),
        ('sn', 2, 0),
    ]
    page = (out / 'tables.md').read_text()
    # All folders say the same: 0.25 and 0.5.
    assert '| BN | 2 | 50.0 ± 0.0 | 75.0 ± 0.0 | 40.0 ± 0.0 | 50.0, 50.0 |' in page
    assert '| SN | 1 | 25.0 ± 0.0 | 50.0 ± 0.0 |' in page
    assert '| neck | 2 | 0.500 ± 0.000 | 0.250 ± 0.000 | 0.250 ± 0.000 |' in page
    shown = capsys.readouterr().out
    assert shown.startswith('6 of 6 runs are already finished.\n')
    assert shown.endswith(page)
    assert imread(out / 'ap.png').shape[2] == imread(out / 'ratios.png').shape[2] == 4


@pytest.mark.parametrize('missing', [False, True])
def test_runs_follow_once_all_before_are_finished(
    missing: bool,
    tmp_path: Path,
    make_run: Callable,
    finish: Callable,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = [make_run('bn', 2, seed) for seed in (0, 1)], [make_run('sn', 2, 0)]
    for run in (*first, *second):
        finish(run, tmp_path / 'work')
    if missing:
        shutil.rmtree(tmp_path / 'work' / first[1].name)
    arguments = ['--out', tmp_path / 'out', '--work-dir', tmp_path / 'work', '--finished']
    monkeypatch.setattr(sys, 'argv', ['command', *map(str, arguments)])
    monkeypatch.setattr('signal.signal', lambda *_: None)
    monkeypatch.setattr(torch, 'set_num_threads', lambda _: None)
    seen = []

    def follow(work_dir: Path, records: Sequence[records.Record]) -> list[Run]:
        seen.extend(record.seed for record in records)
        return second

    command_line.run_experiment(
        'A command.',
        lambda work_dir: first,
        small_batch.all_tables,
        lambda records, folder: None,
        follow=follow,
    )
    written, _ = records.read_records(tmp_path / 'out' / 'runs.json')
    names = [(record.variant, record.seed) for record in written]
    assert names == ([('bn', 0)] if missing else [('bn', 0), ('bn', 1), ('sn', 0)])
    assert seen == ([] if missing else [0, 1])


def test_records_stand_for_work_folders_that_are_gone(
    run_small_batch: Callable[..., None], tmp_path: Path
) -> None:
    run_small_batch()
    before = {file.name: file.read_bytes() for file in (tmp_path / 'out').iterdir()}
    shutil.rmtree(tmp_path / 'work')
    run_small_batch()
    assert {file.name: file.read_bytes() for file in (tmp_path / 'out').iterdir()} == before


def test_reused_records_keep_the_machine_that_they_were_trained_on(
    run_small_batch: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where another machine adds to them."""
    machines = iter([{'device': 'abacus', 'threads': 1, 'torch': '9'}, {'device': 'quipu'}])
    monkeypatch.setattr(command_line, 'describe', lambda _: next(machines))
    gone = tmp_path / 'work/bn_b2_s0/done'
    gone.unlink()
    run_small_batch('--finished')
    file = tmp_path / 'out/runs.json'
    run_small_batch('--finished')
    assert records.read_records(file)[1] == {'device': 'abacus', 'threads': 1, 'torch': '9'}
    gone.touch()
    run_small_batch()
    assert records.read_records(file)[1] == {
        'device': 'abacus, quipu',
        'threads': 1,
        'torch': '9',
    }


def test_finished_runs_alone_are_written_on_request(
    run_small_batch: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    for folder in (tmp_path / 'work').glob('sn_b1_*'):
        shutil.rmtree(folder)
    run_small_batch('--finished')
    written, _ = records.read_records(tmp_path / 'out/runs.json')
    assert {(r.variant, r.batch) for r in written} == {('bn', 2), ('sn', 2)}
    shutil.rmtree(tmp_path / 'work')
    (tmp_path / 'out/runs.json').unlink()
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        run_small_batch('--finished')
    assert caught.value.code == 2
    assert 'no training in' in capsys.readouterr().err


def test_record_has_the_name_that_the_plan_gives_its_run(
    run_small_batch: Callable[..., None], tmp_path: Path
) -> None:
    run_small_batch('--finished')
    file = tmp_path / 'out/runs.json'
    before = file.read_text()
    file.write_text(before.replace('"variant": "bn"', '"variant": "batch-norm"'))
    run_small_batch('--finished')
    assert file.read_text() == before


@pytest.mark.parametrize(
    'content', ['', '{"runs": [', '[]', '{"runs": [{"ap": 1}], "machine": {}}']
)
def test_damaged_records_are_one_sentence_and_stay(
    content: str,
    run_small_batch: Callable[..., None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
) -> None:
    (tmp_path / 'out').mkdir()
    (tmp_path / 'out/runs.json').write_text(content)
    with pytest.raises(SystemExit) as caught:
        run_small_batch('--finished')
    assert caught.value.code == 2
    assert 'runs.json is damaged, or not from an experiment' in capsys.readouterr().err
    assert (tmp_path / 'out/runs.json').read_text() == content


def test_finished_runs_are_written_while_another_command_trains(
    run_small_batch: Callable[..., None], tmp_path: Path
) -> None:
    with locked(tmp_path / 'work'):
        run_small_batch('--finished')
        run_small_batch()
    assert (tmp_path / 'out/tables.md').exists()


@pytest.mark.parametrize('place', ['out', 'out/below'])
def test_file_in_place_of_a_folder_is_one_sentence_before_any_training(
    place: str,
    run_small_batch: Callable[..., None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
) -> None:
    (tmp_path / 'out').write_text('kept')
    with pytest.raises(SystemExit) as caught:
        run_small_batch('--out', str(tmp_path / place))
    assert caught.value.code == 2
    shown = capsys.readouterr()
    assert shown.err.startswith(f'error: {tmp_path / place} cannot be written to (')
    assert shown.err.count('\n') == 1
    assert shown.out == ''
    assert (tmp_path / 'out').read_text() == 'kept'


def test_wrong_number_of_jobs_is_one_sentence_and_writes_nothing(
    run_small_batch: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit) as caught:
        run_small_batch('--jobs', '0')
    assert caught.value.code == 2
    shown = capsys.readouterr()
    assert shown.err == ('error: at least one training must run at a time, not 0: give --jobs 1.\n')
    assert not (tmp_path / 'out').exists()


def test_another_working_directory_is_refused(
    run_small_batch: Callable[..., None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        run_small_batch()
    assert ended.value.code == 2
    assert 'error: run this in the root of the repository: cd /' in capsys.readouterr().err
    assert not (tmp_path / 'out').exists()
