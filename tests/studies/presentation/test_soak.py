"""The tables of a long training are those of samples whose growth is known."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from studies.presentation.soak import (
    after_warm_up,
    draw_soak,
    quarter_table,
    read_samples,
    slope,
    soak_page,
)

MACHINE = dict(device='a CPU', threads=1, torch='2')


def record(growth: float = 0.0, noise: float = 0.0) -> dict:
    """Two hours of samples every ten seconds; memory grows by MB per hour after the warm-up."""
    dice = np.random.default_rng(0)
    seconds = np.arange(720) * 10.0
    pss = 1e9 + growth * 1e6 * seconds / 3600 + noise * 1e6 * dice.standard_normal(720)
    columns = {
        'seconds': seconds,
        'pss': np.where(seconds < 800, 5e8, pss),
        'rss': np.full(720, 7e8),
        'files': np.where(np.arange(720) % 2, 100, 104),
        'threads': np.full(720, 17),
        'cpu': 0.3 * seconds,
        'iteration': 2 * seconds,
        'load': np.full(720, 3.5),
    }
    # They end with the process.
    for name in ('pss', 'files', 'threads'):
        columns[name][-3:] = 1
    rows = np.stack(list(columns.values()), 1).tolist()
    return dict(config='a.py', hours=2, exit_code=0, box_aps=[0.1, 0.5], columns=list(columns),
                samples=rows)  # fmt: skip


@pytest.mark.parametrize(('growth', 'noise'), [(0, 0), (12.5, 0), (12.5, 10), (-3, 1)])
def test_slope(growth: float, noise: float) -> None:
    found = slope(after_warm_up(read_samples(record(growth, noise))), 'pss')
    assert found.value / 1e6 == pytest.approx(growth, abs=1e-6 + 4 * found.error / 1e6)
    # Of a line through n points with noise σ over the time t: σ √12 / (t √n).
    expected = noise * 12**0.5 / ((1 - 1 / 8 - 1 / 64) * 2 * 622**0.5)
    assert found.error / 1e6 == pytest.approx(expected, rel=0.5, abs=1e-6)


def test_quarters() -> None:
    lines = quarter_table(after_warm_up(read_samples(record()))).splitlines()
    assert len(lines) == 6
    expected = '| 1000 (1000) | 700 (700) | 100 to 104 | 17 to 17 | 0.150 | 0.500 |'
    assert all(line.endswith(expected) for line in lines[2:])


def test_page_and_figure(tmp_path: Path) -> None:
    page = soak_page(record(30), MACHINE)
    assert '2.00 hours (ended by itself, exit code 0), 14380 iterations, 2 evaluations' in page
    assert 'the last with a box AP of 50.0 %' in page
    assert '| memory of all processes (MB) | +30.0 ± 0.0 |' in page
    running = soak_page({**record(), 'exit_code': None, 'box_aps': []}, MACHINE)
    assert 'still running' in running
    draw_soak(record(30), tmp_path / 'usage.png')
    assert imread(tmp_path / 'usage.png').std() > 0


def test_committed_tables_are_those_of_the_samples(repo: Path) -> None:
    folder = repo / 'docs/soak'
    data = json.loads((folder / 'samples.json').read_text())
    page = (folder / 'tables.md').read_text()
    assert soak_page(data, data['machine']) + '\n' == page
    assert float(re.search(r'([\d.]+) hours', page)[1]) >= 2
    rows = re.findall(r'^\|.*\|$', (repo / 'docs/results/soak.md').read_text(), re.MULTILINE)
    assert rows == re.findall(r'^\|.*\|$', page, re.MULTILINE)
