"""Logs of trainings, whole and damaged."""

from pathlib import Path

import pytest

from sn_openmmlab.analysis.scalars import read_scalars
from sn_openmmlab.errors import UsageError

WHOLE = b'{"loss": 0.5, "step": 20}\n{"loss": NaN, "step": 40}\n'


def test_each_line_is_an_entry(tmp_path: Path) -> None:
    (tmp_path / 'scalars.json').write_bytes(WHOLE)
    assert [entry['step'] for entry in read_scalars(tmp_path / 'scalars.json')] == [20, 40]


def test_log_without_entries_is_empty(tmp_path: Path) -> None:
    (tmp_path / 'scalars.json').touch()
    assert read_scalars(tmp_path / 'scalars.json') == []


@pytest.mark.parametrize(
    ('damage', 'sentence'),
    [
        (b'{"loss": 0.', 'scalars.json is damaged: its line 3 is cut short'),
        (b'["step"]\n', 'its line 3 is cut short, or nothing that mmengine logs'),
        (b'{"loss": 0.5}\n', 'its line 3'),
        (b'\xff\xfe\n', 'scalars.json is damaged: it is not text'),
    ],
)
def test_damaged_log_is_one_sentence(damage: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / 'scalars.json').write_bytes(WHOLE + damage)
    with pytest.raises(UsageError, match=sentence):
        read_scalars(tmp_path / 'scalars.json')


def test_folder_as_a_log_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='cannot be read: Is a directory'):
        read_scalars(tmp_path)
