"""Archives of torch.save pass; others, which two readers could read differently, do not."""

import io
import zipfile
from pathlib import Path

import pytest
import torch

from sn_openmmlab.checkpoints.files.archive import check_archive, is_archive
from sn_openmmlab.errors import UsageError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / 'weights.pth'
    torch.save({'a': torch.ones(100)}, path)
    return path


def check(file: Path) -> None:
    with file.open('rb') as stream:
        assert is_archive(stream)
        check_archive(stream, 'NAME')


def test_archives_with_and_without_64_bits_pass(file: Path) -> None:
    assert b'PK\x06\x06' in file.read_bytes()
    check(file)
    short = file.with_name('short.pth')
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(short, 'w') as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    assert b'PK\x06\x06' not in short.read_bytes()
    check(short)


def test_the_older_format_is_no_archive(file: Path) -> None:
    torch.save({}, file, _use_new_zipfile_serialization=False)
    with file.open('rb') as stream:
        assert not is_archive(stream)


def test_compressed_parts_are_refused_even_if_small(file: Path) -> None:
    with zipfile.ZipFile(file, 'a', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr('weights/data/1', b'a')
    with pytest.raises(UsageError, match='NAME was not loaded: it would unpack to'):
        check(file)


@pytest.mark.parametrize('place', ['before', 'behind', 'comment'])
def test_other_bytes_are_refused(place: str, file: Path) -> None:
    whole = file.read_bytes()
    comment = whole[:-2] + b'\x03\x00abc'
    contents = {'before': b'PK\x03\x04' + whole, 'behind': whole + bytes(4), 'comment': comment}
    file.write_bytes(contents[place])
    with pytest.raises(ValueError, match='does not end as'):
        check(file)


@pytest.mark.parametrize('place', [0, 40, 48, 56, 64, 76, 88, 92])
def test_numbers_of_the_end_that_differ_are_refused(place: int, file: Path) -> None:
    """Python and torch would look for the table of parts in different places, or find none."""
    whole = bytearray(file.read_bytes())
    whole[len(whole) - 98 + place] ^= 1
    file.write_bytes(whole)
    with pytest.raises((ValueError, zipfile.BadZipFile)):
        check(file)


def test_two_tables_are_refused(file: Path) -> None:
    """Python takes the record of 64 bits before its locator; torch the one that it names."""
    whole = file.read_bytes()
    other = io.BytesIO()
    with zipfile.ZipFile(other, 'w') as archive:
        archive.writestr('weights/data.pkl', b'other')
    hidden = other.getvalue() + whole[-98:]
    file.write_bytes(whole[:-98] + hidden)
    with pytest.raises((ValueError, zipfile.BadZipFile)):
        check(file)
