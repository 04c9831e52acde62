"""The runs of a work folder and its newest checkpoint are found, or one sentence says why not."""

from pathlib import Path

import pytest

from sn_openmmlab.analysis.work_dir import find_runs, newest_checkpoint
from sn_openmmlab.errors import UsageError


@pytest.fixture
def work_dir(tmp_path: Path) -> Path:
    """A work folder with one logged run and its checkpoint."""
    work_dir = tmp_path / 'work'
    log = work_dir / '20260101_000000/vis_data/scalars.json'
    log.parent.mkdir(parents=True)
    log.touch()
    (work_dir / 'epoch_2.pth').touch()
    (work_dir / 'last_checkpoint').write_text(str(work_dir / 'epoch_2.pth'))
    return work_dir


def test_runs_with_logs_are_found_newest_last(work_dir: Path) -> None:
    later = work_dir / '20260102_000000/vis_data'
    later.mkdir(parents=True)
    assert find_runs(work_dir) == [work_dir / '20260101_000000'], 'a test logs no scalars'
    (later / 'scalars.json').touch()
    assert find_runs(work_dir) == [work_dir / '20260101_000000', later.parent]


@pytest.mark.parametrize('folder', ['absent', 'empty'])
def test_missing_run_is_one_sentence(folder: str, tmp_path: Path) -> None:
    (tmp_path / 'empty').mkdir()
    with pytest.raises(UsageError, match=f'{folder} holds no finished training'):
        find_runs(tmp_path / folder)
    with pytest.raises(UsageError, match=f'{folder} holds no checkpoint'):
        newest_checkpoint(tmp_path / folder)


def test_newest_checkpoint_is_found_where_the_folder_has_moved(
    work_dir: Path, tmp_path: Path
) -> None:
    assert newest_checkpoint(work_dir) == work_dir / 'epoch_2.pth'
    moved = work_dir.rename(tmp_path / 'moved')
    assert newest_checkpoint(moved) == moved / 'epoch_2.pth'


@pytest.mark.parametrize(
    'content',
    [b'', b'epoch_3.pth', b'/elsewhere/epoch_3.pth', b'\xff\xfe', b'\0', b'x' * 300, None],
)
def test_newest_checkpoint_that_nothing_names_is_one_sentence(
    content: bytes | None, work_dir: Path
) -> None:
    (work_dir / 'last_checkpoint').unlink()
    if content is not None:
        (work_dir / 'last_checkpoint').write_bytes(content)
    with pytest.raises(UsageError, match='last_checkpoint names none of the checkpoints there'):
        newest_checkpoint(work_dir)
    (work_dir / 'epoch_2.pth').unlink()
    with pytest.raises(UsageError, match='holds no checkpoint'):
        newest_checkpoint(work_dir)


def test_folder_in_place_of_the_name_is_one_sentence(work_dir: Path) -> None:
    (work_dir / 'last_checkpoint').unlink()
    (work_dir / 'last_checkpoint').mkdir()
    with pytest.raises(UsageError, match='last_checkpoint names none of the checkpoints there'):
        newest_checkpoint(work_dir)
