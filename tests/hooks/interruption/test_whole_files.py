"""Files are written whole, and removed later."""

import os
from pathlib import Path

import pytest
from mmengine.fileio import LocalBackend

from sn_openmmlab.hooks.interruption.whole_files import LateRemoval, WholeFiles


def test_file_is_written(tmp_path: Path) -> None:
    file = tmp_path / 'new/iter_1.pth'
    for content in (b'first', b'second'):
        WholeFiles().put(content, file)
        assert file.read_bytes() == content
    assert list(file.parent.iterdir()) == [file]


def test_error_names_the_file_and_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / 'iter_1.pth'
    file.write_bytes(b'old')

    def fail(number: int) -> None:
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(os, 'fsync', fail)
    with pytest.raises(OSError, match='No space left') as caught:
        WholeFiles().put(b'new', file)
    assert caught.value.filename == str(file)
    assert file.read_bytes() == b'old'
    assert list(tmp_path.iterdir()) == [file]


def test_devices_are_written_to(tmp_path: Path) -> None:
    WholeFiles().put(b'nothing', os.devnull)
    assert not os.path.isfile(os.devnull)


def test_files_and_folders_are_removed_when_told(tmp_path: Path) -> None:
    (tmp_path / 'folder').mkdir()
    names = ('a', 'b', 'folder')
    for name in names[:2]:
        (tmp_path / name).touch()
    backend = LateRemoval(LocalBackend())
    backend.remove(str(tmp_path / 'a'))
    backend.remove(str(tmp_path / 'b'))
    backend.rmtree(str(tmp_path / 'folder'))
    assert backend.isfile(tmp_path / 'a')
    backend.remove_now(keep={str(tmp_path / 'b'), None})
    assert [file.name for file in tmp_path.iterdir()] == ['b']
    backend.remove_now()
    assert (tmp_path / 'b').exists()
