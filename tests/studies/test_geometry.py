"""The command geometry, on few batches."""

import json
import sys
from pathlib import Path

import pytest
from matplotlib.image import imread

pytest.importorskip('skimage')
from studies import geometry


def test_it_writes_records_tables_and_the_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = geometry.measure_gammas
    monkeypatch.setattr(geometry, 'measure_gammas', lambda: measure(repeats=1000))
    monkeypatch.setattr(sys, 'argv', ['geometry.py', '--out', str(tmp_path)])
    geometry.main()
    assert {file.name for file in tmp_path.iterdir()} == {
        'measured.json',
        'tables.md',
        'filters.png',
    }
    found = json.loads((tmp_path / 'measured.json').read_text())
    assert len(found['lengths']) == 3 * (3 + len(geometry.SHARES))
    for row in found['lengths']:
        # Filters of lengths 1/2, 1 and 2: the mean square is 7/4, the sum 7/2.
        square = row['before'] ** 2
        variance = (1 - row['share']) * square + row['share'] * 7 / 4
        assert row['measured'] == pytest.approx(row['before'] / variance**0.5)
        rest = 3.5 - row['before']
        assert row['paper'] == pytest.approx(row['before'] / (row['before'] + row['share'] * rest))
        summed = 1 - row['share'] + row['share'] * row['before'] / 3.5
        assert row['paper_sum'] == pytest.approx(summed)
    # 2/√π for two values, halved by √2: 1/√π.
    assert found['gammas'][0]['exact'] == pytest.approx(0.56419, abs=1e-5)
    assert all(row['measured'] == pytest.approx(row['exact'], abs=0.1) for row in found['gammas'])
    white, batch, photographs = found['assumptions']
    assert [*white['instance'], *white['batch']] == pytest.approx([1] * 4)
    assert batch['batch'] == pytest.approx([1, 1]) and batch['instance'][1] > 1.5
    assert photographs['batch'][1] > 2
    assert (
        '| LN | 1.000 | 2.0 | 1.512 | 1.512 | 0.571 | 0.571 |'
        in (tmp_path / 'tables.md').read_text()
    )
    assert imread(tmp_path / 'filters.png').std() > 0
