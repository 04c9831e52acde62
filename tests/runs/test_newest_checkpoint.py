"""The newest whole checkpoint is found, whatever else lies in the work folder."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.newest_checkpoint import newest_checkpoint

Save = Callable[..., Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Return a function (name, iteration) that writes a checkpoint, each a second after another."""
    count = iter(range(100))

    def write(name: str, iteration: int, keep: tuple[str, ...] = ('optimizer',)) -> Path:
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        content = dict(meta=dict(epoch=0, iter=iteration), state_dict={'w': torch.ones(1000)})
        hub = dict(log_scalars={}, runtime_info={}, resumed_keys={})
        optimizer = {key: dict(state={}, param_groups=[]) for key in keep}
        torch.save({**content, 'message_hub': hub, **optimizer}, file)
        moment = 1e9 + next(count)
        os.utime(file, (moment, moment))
        return file

    return write


def record(folder: Path, name: str) -> None:
    (folder / 'last_checkpoint').write_text(name)


def cut(file: Path) -> None:
    """Leave out the end of a file, as a process does that is killed while it writes."""
    moment = file.stat().st_mtime
    file.write_bytes(file.read_bytes()[:-500])
    os.utime(file, (moment, moment))


def spoil(file: Path) -> None:
    """Put zeros in the place of weights, which torch does not notice."""
    content, ones = file.read_bytes(), torch.ones(100).numpy().tobytes()
    assert ones in content
    file.write_bytes(content.replace(ones, bytes(400), 1))
    torch.load(file, weights_only=True)


def test_none_before_the_first(tmp_path: Path) -> None:
    assert newest_checkpoint(tmp_path) is None
    assert newest_checkpoint(tmp_path / 'absent') is None


def test_the_recorded_one_may_have_any_ending(save: Save, tmp_path: Path) -> None:
    file = save('epoch_1.pt', 10)
    record(tmp_path, str(file))
    assert newest_checkpoint(tmp_path) == str(file)


def test_the_recorded_one(save: Save, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    save('iter_10.pth', 10)
    last = save('iter_20.pth', 20)
    record(tmp_path, str(last))
    assert newest_checkpoint(tmp_path) == str(last)
    assert capsys.readouterr().out == ''


def test_one_that_was_written_after_the_record(save: Save, tmp_path: Path) -> None:
    record(tmp_path, str(save('iter_10.pth', 10)))
    later = save('iter_20.pth', 20)
    assert newest_checkpoint(tmp_path) == str(later)


def test_later_ones_that_were_given_up_stay_so(save: Save, tmp_path: Path) -> None:
    save('iter_30.pth', 30)
    save('iter_40.pth', 40)
    # Resumed from an earlier one.
    last = save('iter_20.pth', 20)
    record(tmp_path, str(last))
    assert newest_checkpoint(tmp_path) == str(last)


@pytest.mark.parametrize(
    ('harm', 'why'),
    [(cut, 'is cut short, damaged or no checkpoint'), (spoil, 'is damaged')],
    ids=['cut', 'spoilt'],
)
def test_a_torn_one_is_skipped_with_a_sentence(
    harm: Callable, why: str, save: Save, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    save('epoch_1.pth', 10)
    whole = save('epoch_2.pth', 20)
    torn = save('epoch_3.pth', 30)
    harm(torn)
    for named in (torn, whole):
        record(tmp_path, str(named))
        assert newest_checkpoint(tmp_path) == str(whole)
        assert capsys.readouterr().out == f'{torn} is skipped: it {why}.\n'


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('', 'is empty'),
        ('gone/iter_30.pth', 'names gone/iter_30.pth, which does not exist'),
    ],
)
def test_a_torn_record(
    text: str, said: str, save: Save, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    save('iter_9.pth', 9)
    longest = save('iter_10.pth', 10)
    record(tmp_path, text)
    assert newest_checkpoint(tmp_path) == str(longest)
    expected = f'{tmp_path}/last_checkpoint {said}: looking for the newest checkpoint.\n'
    assert capsys.readouterr().out == expected


def test_a_record_that_is_no_text(save: Save, tmp_path: Path) -> None:
    file = save('iter_10.pth', 10)
    (tmp_path / 'last_checkpoint').write_bytes(b'\xff\xfe\x00')
    assert newest_checkpoint(tmp_path) == str(file)


def test_foreign_files_are_skipped_with_a_sentence_each(
    save: Save, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    last = save('iter_10.pth', 10)
    record(tmp_path, str(last))
    (tmp_path / 'note.pth').write_text('no checkpoint')
    torch.save({'w': torch.ones(1)}, tmp_path / 'resnet50.pth')
    torch.save([1], tmp_path / 'list.pth')
    save('without_optimizer.pth', 20, keep=())
    save('best_coco_bbox_mAP_epoch_9.pth', 20, keep=())
    assert newest_checkpoint(tmp_path) == str(last)
    said = capsys.readouterr().out.splitlines()
    no_training = 'it holds no training that can be resumed.'
    assert said == [
        f'{tmp_path}/list.pth is skipped: {no_training}',
        f'{tmp_path}/note.pth is skipped: it is cut short, damaged or no checkpoint.',
        f'{tmp_path}/resnet50.pth is skipped: {no_training}',
        f'{tmp_path}/without_optimizer.pth is skipped: {no_training}',
    ]


def test_only_the_first_of_several_processes_speaks(
    save: Save, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    save('iter_10.pth', 10)
    (tmp_path / 'note.pth').touch()
    monkeypatch.setenv('RANK', '1')
    newest_checkpoint(tmp_path)
    assert capsys.readouterr().out == ''


def test_training_without_optimizer_state_goes_on_where_it_was(save: Save, tmp_path: Path) -> None:
    last = save('iter_10.pth', 10, keep=())
    record(tmp_path, str(last))
    assert newest_checkpoint(tmp_path) == str(last)


def test_a_folder_of_its_own(save: Save, tmp_path: Path) -> None:
    work_dir = tmp_path / 'work'
    work_dir.mkdir()
    file = save('elsewhere/iter_10.pth', 10)
    assert newest_checkpoint(work_dir, [file.parent]) == str(file)
    later = save('elsewhere/iter_20.pth', 20)
    record(work_dir, str(file))
    assert newest_checkpoint(work_dir) == str(later)


def test_remote_storage_is_left_to_mmengine(tmp_path: Path) -> None:
    record(tmp_path, 's3://bucket/iter_10.pth\n')
    assert newest_checkpoint(tmp_path) == 's3://bucket/iter_10.pth'


def test_nothing_whole_where_something_was(save: Save, tmp_path: Path) -> None:
    torn = save('iter_10.pth', 10)
    record(tmp_path, str(torn))
    cut(torn)
    with pytest.raises(UsageError, match=r'has no whole checkpoint to go on from, but .* remove'):
        newest_checkpoint(tmp_path)
