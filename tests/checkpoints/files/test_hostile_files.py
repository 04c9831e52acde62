"""Files that would take far more memory than they have bytes, and unreadable files."""

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from sn_openmmlab.checkpoints.files.safe_loading import read_checkpoint
from sn_openmmlab.errors import UsageError


@pytest.fixture
def zip_bomb(tmp_path: Path) -> Path:
    """A checkpoint of less than 100 kB that unpacks to 64 MB of zeros."""
    file = tmp_path / 'bomb.pth'
    torch.save({'conv1.weight': torch.zeros(4)}, tmp_path / 'small.pth')
    with (
        zipfile.ZipFile(tmp_path / 'small.pth') as small,
        zipfile.ZipFile(file, 'w', zipfile.ZIP_DEFLATED) as big,
    ):
        for name in small.namelist():
            if not name.endswith('data/0'):
                big.writestr(name, small.read(name))
                continue
            with big.open(name, 'w', force_zip64=True) as stream:
                for _ in range(64):
                    stream.write(bytes(1 << 20))
    assert file.stat().st_size < 100_000
    return file


def test_zip_bomb_is_refused_unread(zip_bomb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: Any, **__: Any) -> None:
        pytest.fail('the file was unpacked')

    monkeypatch.setattr(torch, 'load', load)
    with pytest.raises(UsageError, match=r'bomb\.pth was not loaded: it would unpack to 671\d+'):
        read_checkpoint(zip_bomb)


def test_overlapping_parts_are_refused(tmp_path: Path) -> None:
    """Parts that share their bytes can add up to many times the size of the file."""
    file = tmp_path / 'overlap.pth'
    torch.save({'conv1.weight': torch.ones(1000)}, file)
    with zipfile.ZipFile(file, 'a') as archive:
        (data,) = [part for part in archive.filelist if part.filename.endswith('data/0')]
        archive.filelist.extend([data] * 100)
        archive._didModify = True
    with pytest.raises(UsageError, match='it would unpack to'):
        read_checkpoint(file)


def test_ordinary_checkpoints_are_read(tmp_path: Path) -> None:
    for name, weights in {'none': {}, 'many': {f'{i}.w': torch.ones(1) for i in range(99)}}.items():
        torch.save(weights, tmp_path / name)
        assert len(read_checkpoint(tmp_path / name)) == len(weights)


def test_huge_tensor_of_a_small_file_is_not_copied(tmp_path: Path) -> None:
    file = tmp_path / 'expanded.pth'
    weights = {
        name: torch.ones(1).expand(10**7, 10**7)
        for name in ('conv1.weight', 'sn1.weight', 'sn1.mean_weight', 'fc.weight')
    }
    torch.save(weights, file)
    assert file.stat().st_size < 10_000
    with pytest.raises(
        UsageError, match=r'copies of its content would take 16000000000000\d\d bytes'
    ):
        read_checkpoint(file)


@pytest.mark.parametrize('zip_format', [True, False])
def test_huge_claim_of_a_small_file_is_refused(zip_format: bool, tmp_path: Path) -> None:
    """The file claims that its storage has a petabyte."""
    small = io.BytesIO()
    torch.save({'w': torch.zeros(123457)}, small, _use_new_zipfile_serialization=zip_format)
    # The two integers as a pickle holds them.
    honest, claimed = (
        b'J' + (123457).to_bytes(4, 'little'),
        b'\x8a\x07' + (10**15).to_bytes(7, 'little'),
    )
    file = tmp_path / 'claims.pth'
    if zip_format:
        with zipfile.ZipFile(small) as old, zipfile.ZipFile(file, 'w') as new:
            for name in old.namelist():
                new.writestr(name, old.read(name).replace(honest, claimed))
    else:
        file.write_bytes(small.getvalue().replace(honest, claimed))
    assert honest in small.getvalue()
    with pytest.raises(UsageError, match='is not a checkpoint, or is damaged or cut short'):
        read_checkpoint(file)


def test_unreadable_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / 'secret.pth'
    file.write_bytes(pickle.dumps({}))

    def forbid(*_: Any, **__: Any) -> None:
        raise PermissionError(13, 'Permission denied')

    monkeypatch.setattr('builtins.open', forbid)
    with pytest.raises(UsageError, match=r'secret\.pth cannot be read: Permission denied\.'):
        read_checkpoint(file)
