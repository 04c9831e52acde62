"""A checkpoint is written whole or not at all, and nothing else is touched."""

import errno
import os
import signal
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from sn_openmmlab.checkpoints.files.writing import check_output, write_checkpoint
from sn_openmmlab.errors import UsageError

NEW = {'state_dict': {'layer.weight': torch.arange(3.0)}}


@pytest.fixture(params=['new', 'old'])
def output(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file to write, which may already exist."""
    file = tmp_path / 'folder' / 'out.pth'
    file.parent.mkdir()
    if request.param == 'old':
        file.write_bytes(b'old')
    return file


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_checkpoint_is_written(output: Path) -> None:
    write_checkpoint(NEW, output)
    assert list(contents(output.parent)) == ['out.pth']
    read = torch.load(output, weights_only=True)
    assert read['state_dict']['layer.weight'].tolist() == [0, 1, 2]


def test_permissions_are_the_usual(tmp_path: Path) -> None:
    (tmp_path / 'usual').write_bytes(b'')
    write_checkpoint(NEW, tmp_path / 'out.pth')
    modes = {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert len(modes) == 1


@pytest.mark.parametrize('mode', [0o600, 0o640, 0o444])
def test_permissions_of_a_replaced_file_stay(mode: int, tmp_path: Path) -> None:
    file = tmp_path / 'out.pth'
    file.write_bytes(b'old')
    file.chmod(mode)
    write_checkpoint(NEW, file)
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert torch.load(file, weights_only=True)['state_dict']['layer.weight'].shape == (3,)


def test_permissions_are_set_before_there_is_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / 'out.pth'
    file.write_bytes(b'old')
    file.chmod(0o600)
    modes = []
    monkeypatch.setattr(os, 'fsync', lambda number: modes.append(os.fstat(number).st_mode))
    write_checkpoint(NEW, file)
    assert [stat.S_IMODE(mode) for mode in modes] == [0o600]


def test_folders_are_made(tmp_path: Path) -> None:
    write_checkpoint(NEW, tmp_path / 'a/b/out.pth')
    assert list(contents(tmp_path / 'a/b')) == ['out.pth']


def test_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / 'there').mkdir()
    target = tmp_path / 'there/out.pth'
    target.write_bytes(b'old')
    (tmp_path / 'link.pth').symlink_to(target)
    write_checkpoint(NEW, tmp_path / 'link.pth')
    assert (tmp_path / 'link.pth').is_symlink()
    assert torch.load(target, weights_only=True)['state_dict']['layer.weight'].shape == (3,)
    assert list(contents(tmp_path / 'there')) == ['out.pth']


def fail_with(number: int) -> Callable:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize('step', ['fsync', 'replace'])
@pytest.mark.parametrize(
    ('number', 'message'),
    [
        (errno.ENOSPC, 'out.pth was not written: No space left on device'),
        (errno.EACCES, 'out.pth was not written: Permission denied'),
        (errno.EROFS, 'out.pth was not written: Read-only file system'),
    ],
)
def test_failure_leaves_what_was(
    step: str, number: int, message: str, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(output.parent)
    monkeypatch.setattr(os, step, fail_with(number))
    with pytest.raises(UsageError, match=message):
        write_checkpoint(NEW, output)
    assert contents(output.parent) == before


@pytest.mark.skipif(not hasattr(os, 'geteuid'), reason='needs file permissions')
def test_folder_that_may_not_be_written(output: Path, unprivileged: None) -> None:
    with pytest.raises(UsageError, match=r'out\.pth was not written: Permission denied'):
        write_checkpoint(NEW, output)


@pytest.fixture
def unprivileged(tmp_path: Path) -> Iterator[None]:
    """The folders of this test are read-only, even for root."""
    folders = [tmp_path, *(path for path in tmp_path.iterdir() if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    yield
    os.seteuid(user)
    for folder in folders:
        folder.chmod(0o755)


@pytest.fixture
def full_disk() -> Iterator[None]:
    """A limit on the size of files, which acts like a disk that gets full."""
    resource = pytest.importorskip('resource')
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, handler)


def test_full_disk_leaves_what_was(output: Path, full_disk: None) -> None:
    before = contents(output.parent)
    with pytest.raises(UsageError, match=r'out\.pth was not written: File too large'):
        write_checkpoint({'state_dict': {'layer.weight': torch.ones(10**6)}}, output)
    assert contents(output.parent) == before


@pytest.mark.parametrize('step', ['fsync', 'replace'])
def test_interruption_leaves_what_was(
    step: str, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(output.parent)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, step, interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_checkpoint(NEW, output)
    assert contents(output.parent) == before


def test_input_is_no_output(tmp_path: Path) -> None:
    file = tmp_path / 'in.pth'
    file.write_bytes(b'weights')
    (tmp_path / 'soft.pth').symlink_to(file)
    (tmp_path / 'hard.pth').hardlink_to(file)
    for name in ('in.pth', 'soft.pth', 'hard.pth', '../' + tmp_path.name + '/in.pth'):
        with pytest.raises(UsageError, match='is read and would be overwritten'):
            check_output(tmp_path / name, [tmp_path / 'other.pth', file])


def test_unwritable_outputs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_output(tmp_path / 'new/out.pth', [tmp_path / 'in.pth'])
    with pytest.raises(UsageError, match='is a folder: name the file'):
        check_output(tmp_path, [])
    with pytest.raises(UsageError, match='/dev/null is not a regular file'):
        check_output('/dev/null', [])
    (tmp_path / 'out.pth').write_bytes(b'')
    monkeypatch.setattr(os, 'access', lambda *_: False)
    with pytest.raises(UsageError, match='exists and is write-protected'):
        check_output(tmp_path / 'out.pth', [])


@pytest.mark.parametrize(
    ('name', 'message'),
    [
        ('', 'the name of the file to write is empty'),
        ('.', r'\. is a folder'),
        ('new/', 'new/ is a folder'),
        ('new/.', r'new/\. is a folder'),
        ('new/..', r'new/\.\. is a folder'),
        ('file/', 'file/ is a folder'),
    ],
)
def test_names_of_no_file_are_refused(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path('file').write_bytes(b'file')
    with pytest.raises(UsageError, match=message):
        check_output(name, [])
    with pytest.raises(UsageError, match=message):
        write_checkpoint(NEW, name)
    assert contents(tmp_path) == {'file': b'file'}


def test_file_in_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / 'file').write_bytes(b'file')
    with pytest.raises(UsageError, match=r'was not written: (Not a directory|File exists)'):
        write_checkpoint(NEW, tmp_path / 'file/out.pth')
    assert contents(tmp_path) == {'file': b'file'}
