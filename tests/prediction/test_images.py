"""Which images are predicted on, and what is said about files that are none."""

import shutil
from pathlib import Path

import pytest
from PIL import Image

from sn_openmmlab.errors import UsageError
from sn_openmmlab.prediction.images import check_images, find_images


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two images, and with files and a folder that are none."""
    folder = tmp_path / 'pictures'
    (folder / 'below').mkdir(parents=True)
    for name in ('b.png', 'A.JPG', '.hidden.png', 'notes.txt', 'below/c.png'):
        (folder / name).touch()
    return folder


def test_images_of_a_folder_are_found_and_the_rest_is_named(
    folder: Path, capsys: pytest.CaptureFixture
) -> None:
    assert find_images([folder]) == [folder / 'A.JPG', folder / 'b.png']
    assert (
        f'Skipped what is no image by its name in {folder}: notes.txt.' in capsys.readouterr().out
    )


def test_file_that_is_named_may_have_any_suffix_and_is_taken_once(folder: Path) -> None:
    named = [folder / 'notes.txt', folder / 'b.png', folder, folder / 'below/../b.png']
    assert find_images(map(str, named)) == [
        folder / 'notes.txt',
        folder / 'b.png',
        folder / 'A.JPG',
    ]


def test_what_does_not_exist_is_named(folder: Path) -> None:
    with pytest.raises(UsageError, match=f'there is no image or folder {folder}/absent'):
        find_images([folder, folder / 'absent'])


def test_folder_without_images_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f'{tmp_path} has no images .*: name one'):
        find_images([tmp_path])
    (tmp_path / 'below').mkdir()
    (tmp_path / 'notes.txt').touch()
    with pytest.raises(UsageError, match=r'has no images .*: its folders are not searched'):
        find_images([tmp_path])


def test_images_of_every_kind_are_readable(odd_images: Path) -> None:
    images = find_images([odd_images])
    assert len(images) == 16
    check_images(images)


@pytest.mark.parametrize('suffix', ['jpg', 'png', 'bmp', 'tif', 'webp'])
def test_image_that_is_cut_short_is_named(suffix: str, odd_images: Path, tmp_path: Path) -> None:
    whole = tmp_path / f'whole.{suffix}'
    Image.open(odd_images / 'turned.jpg').save(whole)
    content = whole.read_bytes()
    cut = tmp_path / f'cut.{suffix}'
    cut.write_bytes(content[: len(content) * 9 // 10])
    with pytest.raises(UsageError, match=f'{cut} is broken, cut short'):
        check_images([whole, cut])


def test_files_that_are_no_images_are_named(odd_images: Path, tmp_path: Path) -> None:
    text, empty = tmp_path / 'text.png', tmp_path / 'empty.png'
    text.write_text('<svg></svg>')
    empty.touch()
    good = shutil.copy(odd_images / 'one_pixel.png', tmp_path)
    with pytest.raises(UsageError) as caught:
        check_images([Path(good), text, empty])
    assert str(caught.value) == (
        f'{text} is no image that OpenCV reads: convert it to PNG or JPEG, or leave it out. '
        'Also not readable: empty.png.'
    )
    with pytest.raises(UsageError, match=f'{empty} is empty'):
        check_images([empty])
