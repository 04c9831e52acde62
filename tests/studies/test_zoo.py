"""The command runs what is not done yet, and writes records and tables."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip('mmdet')
pytest.importorskip('mmseg')
pytest.importorskip('mmpretrain')

from studies import zoo


def test_a_run_goes_on_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    asked = []

    def survey(toolbox: str, paths: list[str]) -> list[dict]:
        asked.append((toolbox, list(paths)))
        return [{'config': path, 'norms': {'BN': 2}, 'sn': 2} for path in paths]

    monkeypatch.setattr(zoo, 'survey', survey)
    command = ['zoo', '--out', str(tmp_path), '--parts', 'mmseg']
    for found in (['a.py'], ['a.py', 'b.py']):
        monkeypatch.setattr(zoo, 'find_configs', lambda toolbox, found=found: found)
        monkeypatch.setattr(sys, 'argv', command)
        zoo.main()
    assert asked == [('mmseg', ['a.py']), ('mmseg', ['b.py'])]
    assert 'mmseg 1: b.py' in capsys.readouterr().out
    (about,) = tmp_path.glob('*.json')
    assert about.stem in ('onedl', 'openmmlab')
    assert {'machine', 'versions'} == json.loads(about.read_text()).keys()
    assert (
        f'| mmseg | {about.stem} | 2 | 2 | 2 | 2 | 2 | 4 | ' in (tmp_path / 'tables.md').read_text()
    )
