"""Files are looked for by few requests, and found as the file system finds them."""

import os
from pathlib import Path

import pytest

from sn_openmmlab.runs.data.folders import has_file, missing_files


def test_missing_files_are_those_that_do_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'a' / 'b').mkdir(parents=True)
    for name in ('0.png', 'a/1.png', 'a/b/2.png'):
        (tmp_path / name).touch()
    (tmp_path / 'link.png').symlink_to('0.png')
    there = ['0.png', 'a/1.png', 'link.png', 'a/b/2.png', 'a/../0.png', './a//1.png']
    absent = ['1.png', 'a/2.png', 'a/b/c/2.png', 'c/0.png']
    files = [name for pair in zip(there, absent, strict=False) for name in pair] + there[4:]
    monkeypatch.chdir(tmp_path)
    assert missing_files(files) == absent
    assert missing_files(f'{tmp_path}/{name}' for name in files) == [
        f'{tmp_path}/{name}' for name in absent
    ]


def test_each_folder_is_listed_once_and_no_file_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / folder / f'{i}.png' for i in range(5) for folder in 'ab']
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.touch()
    listed = []
    listdir = os.listdir
    monkeypatch.setattr(os, 'listdir', lambda path: listed.append(path) or listdir(path))
    monkeypatch.setattr(os.path, 'exists', lambda path: pytest.fail(f'asks for {path}'))
    assert missing_files(map(str, files)) == []
    assert sorted(listed) == [str(tmp_path / 'a'), str(tmp_path / 'b')]


def test_other_spellings_of_a_name_count_where_the_file_system_knows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'a.png').touch()

    def exists(path: str) -> bool:
        return Path(path).with_name(Path(path).name.lower()).is_file()

    monkeypatch.setattr(os.path, 'exists', exists)
    assert missing_files([f'{tmp_path}/A.PNG', f'{tmp_path}/B.PNG']) == [f'{tmp_path}/B.PNG']


def test_file_is_found_at_any_depth_and_through_links(tmp_path: Path) -> None:
    deep = tmp_path / 'data' / 'a' / 'b'
    deep.mkdir(parents=True)
    (tmp_path / 'data' / 'c').mkdir()
    assert not has_file(str(tmp_path / 'data'))
    (tmp_path / 'elsewhere').mkdir()
    (tmp_path / 'elsewhere' / '0.png').touch()
    (deep / 'linked').symlink_to(tmp_path / 'elsewhere')
    assert has_file(str(tmp_path / 'data'))
