"""A run that stops before it has a result leaves its work folder as it was."""

from pathlib import Path

import pytest
from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.errors.leftovers import no_leftovers


def config_of(work_dir: Path) -> Config:
    return Config(dict(work_dir=str(work_dir)), cfg_text='#', filename='elsewhere/run.py')


def start(work_dir: Path) -> Path:
    """Write what mmengine does before the first iteration; return the folder of the log."""
    log = work_dir / '20260101_120000'
    (log / 'vis_data').mkdir(parents=True)
    (log / '20260101_120000.log').write_text('environment')
    (log / 'vis_data/config.py').write_text('a = 1')
    (log / 'vis_data/scalars.json').touch()
    (work_dir / 'run.py').write_text('a = 1')
    return log


def test_new_folders_are_removed(tmp_path: Path) -> None:
    with pytest.raises(UsageError), no_leftovers(config_of(tmp_path / 'a/b')):
        start(tmp_path / 'a/b')
        raise UsageError('no.')
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / '20250101_120000').mkdir()
    (tmp_path / 'epoch_1.pth').touch()
    (tmp_path / 'run.py').write_text('old')
    before = sorted(tmp_path.rglob('*'))
    with pytest.raises(UsageError), no_leftovers(config_of(tmp_path)):
        start(tmp_path)
        raise UsageError('no.')
    assert sorted(tmp_path.rglob('*')) == before
    assert (tmp_path / 'run.py').read_text() == 'old'


@pytest.mark.parametrize('result', ['vis_data/scalars.json', 'vis_data/pictures/0.png'])
def test_results_stay(result: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError), no_leftovers(config_of(tmp_path / 'work')):
        file = start(tmp_path / 'work') / result
        file.parent.mkdir(exist_ok=True)
        file.write_text('{"loss": 1.0}')
        raise UsageError('no.')
    assert file.is_file()
    assert (tmp_path / 'work/run.py').is_file()


def test_checkpoint_stays_with_its_log(tmp_path: Path) -> None:
    with pytest.raises(UsageError), no_leftovers(config_of(tmp_path)):
        log = start(tmp_path)
        (tmp_path / 'iter_1.pth').touch()
        raise UsageError('no.')
    assert (tmp_path / 'iter_1.pth').is_file()
    assert log.is_dir()


def test_other_errors_leave_all(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match='a bug'), no_leftovers(config_of(tmp_path)):
        log = start(tmp_path)
        raise ValueError('a bug')
    assert log.is_dir()
