"""The table and the figures are written as far as they make sense, all or none."""

import os
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from sn_openmmlab.analysis import ratio_report
from sn_openmmlab.analysis.importance import LayerRatios
from sn_openmmlab.analysis.ratio_report import check_folder, write_ratio_report
from sn_openmmlab.analysis.ratio_sources import Source
from sn_openmmlab.errors import UsageError

TABLES = ['importance_ratios.csv', 'importance_ratios.json']
LAYER = LayerRatios('neck.sn', ('in', 'bn'), (0.5, 0.5), (0.5, 0.5))
OTHER = LayerRatios('head.sn', ('in', 'bn'), (0.5, 0.5), (0.5, 0.5))
AVERAGES = {'all': {kind: {'in': 0.5, 'bn': 0.5} for kind in ('mean', 'var')}}


@pytest.mark.parametrize(
    ('sources', 'figures'),
    [
        ([Source('a', [LAYER], {})], ['layers.png', 'parts.png']),
        ([Source('a', [LAYER], {0: AVERAGES})], ['layers.png', 'parts.png']),
        (
            [Source('a', [LAYER], {0: AVERAGES, 9: AVERAGES})],
            ['course.png', 'layers.png', 'parts.png'],
        ),
        (
            [Source('a', [LAYER], {}), Source('b', [LAYER], {})],
            ['layers.png', 'networks.png', 'parts.png'],
        ),
        (
            [Source('(8, 2)', [LAYER], {}), Source('a/../b', [LAYER, OTHER], {})],
            ['layers_8_2.png', 'layers_a_.._b.png', 'networks.png', 'parts.png'],
        ),
        (
            [Source('a b', [LAYER], {}), Source('a/b', [OTHER], {})],
            ['layers_2.png', 'layers_a_b.png', 'networks.png', 'parts.png'],
        ),
        (
            [
                Source('a b', [LAYER], {}),
                Source('3', [OTHER], {}),
                Source('a/b', [LAYER], {}),
                Source('x' * 300, [LAYER], {}),
            ],
            [f'layers_{x}.png' for x in ('3', '4', 'a_b', 'x' * 50)]
            + ['networks.png', 'parts.png'],
        ),
    ],
)
def test_figures_fit_what_is_known(
    sources: list[Source], figures: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for figure in ('parts_figure', 'networks_figure', 'layers_figure', 'course_figure'):
        monkeypatch.setattr(ratio_report, figure, lambda _: Figure())
    (tmp_path / 'out').mkdir()
    (tmp_path / 'out/mine.txt').touch()
    written = write_ratio_report(sources, tmp_path / 'out')
    found = sorted(file.name for file in (tmp_path / 'out').iterdir())
    assert found == sorted([*TABLES, *figures, 'mine.txt'])
    assert sorted(file.name for file in written) == sorted([*TABLES, *figures])


def test_files_are_a_table_and_pictures(tmp_path: Path) -> None:
    write_ratio_report([Source('a', [LAYER], {})], tmp_path / 'new/out')
    assert 'a,neck.sn,neck,,,,in,0.5' in (tmp_path / 'new/out/importance_ratios.csv').read_text()
    assert imread(tmp_path / 'new/out/parts.png').shape[1] == 1320


def test_label_of_bytes_that_are_no_text_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ratio_report, 'parts_figure', lambda _: Figure())
    write_ratio_report([Source('by\udcffte', [LAYER], {})], tmp_path)
    for name in TABLES:
        assert 'by?te' in (tmp_path / name).read_text(encoding='utf-8')


def test_folder_in_place_of_a_figure_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ratio_report, 'parts_figure', lambda _: Figure())
    (tmp_path / 'parts.png').mkdir()
    with pytest.raises(UsageError, match=r'parts.png is a folder: remove it'):
        write_ratio_report([Source('a', [LAYER], {})], tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ['parts.png']


def test_failure_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(figure: Figure, file: Path) -> None:
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(Figure, 'savefig', full)
    with pytest.raises(UsageError, match=r'nothing was written to .*: No space left on device'):
        write_ratio_report([Source('a', [LAYER], {})], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_written_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_folder(tmp_path / 'new/folder')
    (tmp_path / 'file').touch()
    for folder in (tmp_path / 'file', tmp_path / 'file/folder'):
        with pytest.raises(UsageError, match='file is a file, not a folder'):
            check_folder(folder)
    with pytest.raises(UsageError, match='cannot be used: File name too long: name another'):
        check_folder(tmp_path / ('x' * 300))
    # Root may write everywhere.
    monkeypatch.setattr(os, 'access', lambda *_: False)
    with pytest.raises(UsageError, match='is write-protected'):
        check_folder(tmp_path / 'new')
