"""Folders are made or refused in one sentence, and data files are JSON."""

import json
from pathlib import Path

import pytest

from sn_openmmlab.errors import UsageError
from studies.presentation.output import make_folder, write_data, write_rows


def test_folder_is_made_with_its_parents_and_may_exist(tmp_path: Path) -> None:
    (tmp_path / 'a').mkdir()
    make_folder(tmp_path / 'a' / 'b' / 'c')
    make_folder(tmp_path / 'a')
    assert list(tmp_path.rglob('*')) == [tmp_path / 'a', tmp_path / 'a/b', tmp_path / 'a/b/c']


@pytest.mark.parametrize('place', ['file', 'file/below'])
def test_file_in_the_place_of_a_folder_is_reported_and_kept(place: str, tmp_path: Path) -> None:
    (tmp_path / 'file').write_text('kept')
    with pytest.raises(UsageError, match=f'{place} cannot be written to'):
        make_folder(tmp_path / place)
    assert (tmp_path / 'file').read_text() == 'kept'


def test_data_are_read_back(tmp_path: Path) -> None:
    data = {'shape': [2, 3], 'milliseconds': {'BN': 0.5}}
    write_data(data, tmp_path / 'data.json')
    assert json.loads((tmp_path / 'data.json').read_text()) == data


def test_rows_have_a_line_each_and_replace_the_file(tmp_path: Path) -> None:
    file = tmp_path / 'samples.json'
    file.write_text('old')
    write_rows({'a': 1, 'samples': [[1, 2], [3, 4]], 'b': [5]}, 'samples', file)
    assert json.loads(file.read_text()) == {'a': 1, 'b': [5], 'samples': [[1, 2], [3, 4]]}
    assert file.read_text().splitlines()[1:3] == ['[1, 2],', '[3, 4]']
    assert [path.name for path in tmp_path.iterdir()] == ['samples.json']
