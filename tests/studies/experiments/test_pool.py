"""The pool of trainings, with a script that stands in for tools/train.py."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from sn_openmmlab.errors import UsageError
from studies.experiments.plan import Run
from studies.experiments.pool import threads_each, train_missing
from studies.experiments.records import read_record

STAND_IN = """
import json, os, sys, time
from pathlib import Path

config, work_dir, folder, cfg_options, *options = sys.argv[1:]
assert (work_dir, cfg_options) == ('--work-dir', '--cfg-options')
folder = Path(folder)
assert folder.is_dir() and not any(folder.iterdir())
mark = folder.parent / f'running-{folder.name}'
mark.touch()
print('training', folder.name, flush=True)
# Two at a time: the first is alone until the second has come.
until = time.time() + 600
while MEET and len(list(folder.parent.glob('running-*'))) < 2 and time.time() < until:
    if list(folder.parent.glob('*/seen.json')):
        break
    time.sleep(0.01)
if 'schedule.0.seed=13' in options:
    sys.exit('error: the number is unlucky.')
if 'schedule.0.seed=14' in options:
    time.sleep(600)
together = len(list(folder.parent.glob('running-*')))
seen = dict(config=config, options=options, together=together, omp=os.environ['OMP_NUM_THREADS'])
(folder / 'seen.json').write_text(json.dumps(seen))
mark.unlink()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / 'train.py'
    file.write_text(STAND_IN.replace('MEET', 'True'))
    return file


@pytest.fixture
def lonely_script(tmp_path: Path) -> Path:
    """A stand-in for tools/train.py that does not wait for others."""
    file = tmp_path / 'lonely_train.py'
    file.write_text(STAND_IN.replace('MEET', 'False'))
    return file


def seen(run: Run, work_dir: Path) -> dict:
    return json.loads((work_dir / run.name / 'seen.json').read_text())


def test_requested_number_runs_at_a_time(make_run: Callable, script: Path, tmp_path: Path) -> None:
    runs = [make_run(seed=seed) for seed in range(3)]
    work_dir = tmp_path / 'work'
    train_missing(runs, script, work_dir, jobs=2)
    for run in runs:
        assert (work_dir / run.name / 'done').read_text() == ''
        assert (work_dir / f'{run.name}.log').read_text() == f'training {run.name}\n'
    assert max(seen(run, work_dir)['together'] for run in runs) == 2


def test_one_after_the_other_in_their_order(
    make_run: Callable, lonely_script: Path, tmp_path: Path
) -> None:
    runs = [make_run('bn', 4, 7), make_run('sn', 1, 2)]
    train_missing(runs, lonely_script, tmp_path / 'work', jobs=1)
    assert seen(runs[0], tmp_path / 'work') == {
        'config': runs[0].config,
        'options': ['train_dataloader.batch_size=4', 'schedule.0.seed=7'],
        'together': 1,
        'omp': str(threads_each(1)),
    }
    assert seen(runs[1], tmp_path / 'work')['together'] == 1
    times = [(tmp_path / 'work' / run.name / 'done').stat().st_mtime for run in runs]
    assert times == sorted(times)


def test_finished_run_is_kept_and_unfinished_one_restarts(
    make_run: Callable,
    finish: Callable,
    lonely_script: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
) -> None:
    kept, broken = make_run(seed=0), make_run(seed=1)
    work_dir = tmp_path / 'work'
    for run in (kept, broken):
        finish(run, work_dir)
    (work_dir / broken.name / 'done').unlink()
    train_missing([kept, broken], lonely_script, work_dir, jobs=1)
    assert (work_dir / kept.name / 'epoch_2.pth').is_file()
    assert not (work_dir / kept.name / 'seen.json').exists()
    assert not (work_dir / broken.name / 'epoch_2.pth').exists()
    assert (work_dir / broken.name / 'done').is_file()
    assert capsys.readouterr().out.startswith('1 of 2 runs are already finished.\nsn_b2_s1 starts')


def test_failed_training_ends_the_others_and_is_not_finished(
    make_run: Callable, script: Path, tmp_path: Path
) -> None:
    unlucky, endless, later = (make_run(seed=seed) for seed in (13, 14, 15))
    work_dir = tmp_path / 'work'
    with pytest.raises(UsageError) as caught:
        train_missing([unlucky, endless, later], script, work_dir, jobs=2)
    log = work_dir / 'sn_b2_s13.log'
    assert str(caught.value) == (
        f'the training sn_b2_s13 ended with exit code 1; its log {log} ends with: '
        'error: the number is unlucky.'
    )
    assert not list(work_dir.glob('*/done'))
    assert not list(work_dir.glob('*/seen.json'))
    assert not (work_dir / later.name).exists()


def test_run_of_other_settings_stops_before_any_training(
    make_run: Callable, finish: Callable, lonely_script: Path, tmp_path: Path
) -> None:
    first, other = make_run(seed=0), make_run(seed=1)
    finish(other, tmp_path)
    other.options['schedule.0.seed'] = 2
    with pytest.raises(UsageError, match=r'was trained with schedule\.0\.seed=1'):
        train_missing([first, other], lonely_script, tmp_path, jobs=1)
    assert not (tmp_path / first.name).exists()


@pytest.mark.parametrize('place', ['work', 'work/sn_b2_s1'])
def test_file_in_the_place_of_a_folder_stops_before_any_training(
    place: str, make_run: Callable, lonely_script: Path, tmp_path: Path
) -> None:
    file = tmp_path / place
    file.parent.mkdir(exist_ok=True)
    file.write_text('kept')
    with pytest.raises(UsageError, match=f'{place} (cannot be written|must be a folder)'):
        train_missing([make_run(seed=0), make_run(seed=1)], lonely_script, tmp_path / 'work', 1)
    assert file.read_text() == 'kept'
    assert not (tmp_path / 'work' / 'sn_b2_s0').exists()


def test_folder_in_the_place_of_a_log_is_reported(
    make_run: Callable, lonely_script: Path, tmp_path: Path
) -> None:
    (tmp_path / 'sn_b2_s0.log').mkdir()
    with pytest.raises(UsageError, match=r'sn_b2_s0 cannot be written: .*directory'):
        train_missing([make_run()], lonely_script, tmp_path, jobs=1)


# A training that ends, but leaves a process behind, as a killed tool leaves its trainings.
LEAVING = """
import os, sys, time
from pathlib import Path

pid = os.fork()
if pid:
    (Path(sys.argv[3]).parent / 'left').write_text(str(pid))
else:
    time.sleep(600)
"""


def test_folder_stays_locked_while_a_training_lives(
    make_run: Callable, lonely_script: Path, tmp_path: Path
) -> None:
    script, first, second = tmp_path / 'leaving.py', make_run(seed=0), make_run(seed=1)
    script.write_text(LEAVING)
    train_missing([first], script, tmp_path, jobs=1)
    try:
        with pytest.raises(UsageError, match='in use by another command or one of its trainings'):
            train_missing([second], lonely_script, tmp_path, jobs=1)
    finally:
        os.kill(int((tmp_path / 'left').read_text()), signal.SIGKILL)
    assert not (tmp_path / second.name).exists()


@pytest.mark.slow
def test_real_training_ends_in_a_record(
    repo: Path,
    detection_config: Path,
    tool_env: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv('PYTHONPATH', tool_env['PYTHONPATH'])
    options = {'train_dataloader.batch_size': 4, 'randomness.seed': 5}
    run = Run('sn', 4, 5, str(detection_config), options)
    train_missing([run], repo / 'tools' / 'train.py', tmp_path, jobs=1)
    record = read_record(run, tmp_path)
    # One validation, of the one epoch.
    assert len(record.metrics['coco/bbox_mAP']) == 1
    assert list(record.ratios) == ['backbone', 'neck', 'bbox_head', 'all']
    for kinds in record.ratios.values():
        for ratios in kinds.values():
            assert list(ratios) == ['in', 'ln', 'bn']
            assert sum(ratios.values()) == pytest.approx(1)
    # Nothing is left to train: a script that is not there is not missed.
    train_missing([run], repo / 'no_such_script.py', tmp_path, jobs=1)


def test_trainings_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, 'sched_getaffinity', lambda _: set(range(8)), raising=False)
    assert [threads_each(jobs) for jobs in (1, 2, 3, 8, 9)] == [8, 4, 2, 1, 1]
