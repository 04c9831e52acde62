"""The experiment on batch average: the runs that are compared, and the tables of known records."""

from collections import Counter
from pathlib import Path

import pytest
from matplotlib.image import imread

pytest.importorskip('mmpretrain')

from studies.experiments import batch_average, claims_runs
from studies.experiments.records import Record


def test_runs_are_some_of_the_claims(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo)
    runs = batch_average.prepare(tmp_path)
    assert all(run in claims_runs.planned_runs(tmp_path) for run in runs)
    found = Counter((run.variant, run.batch) for run in runs)
    assert found == {(norm, n): 3 for norm in ('sn', 'bn') for n in (1, 2, 32)}


def make(norm: str, per_gpu: int, seed: int) -> Record:
    """A record whose moving average is ahead of batch average by 10 and 0, and by 0 further on."""
    course = [30.0 + seed] * 6
    ahead = [30.0 + seed + 10 * seed, *course[1:]]
    metrics = {'moving 0.1/accuracy/top1': ahead, 'batch average/accuracy/top1': course}
    return Record(norm, per_gpu, seed, metrics, {})


def test_tables_and_picture_of_known_records(tmp_path: Path) -> None:
    records = [make(norm, n, seed) for n in (2, 32) for seed in (0, 1) for norm in ('sn', 'bn')]
    page = batch_average.all_tables(records, {'device': 'abacus', 'threads': 1, 'torch': '9'})
    head, accuracy, difference, *others = page.split('\n## ')
    assert 'over 2 seeds' in head
    assert accuracy.startswith('2 images per GPU: top-1 accuracy (%)\n')
    assert '| norm | statistics | 1/6 | 1/3 | 1/2 | 2/3 | 5/6 | 1 |' in accuracy
    assert '| SN | moving 0.1 | 35.5 ± 7.8 | 30.5 ± 0.7 |' in accuracy
    assert '| BN | batch average | 30.5 ± 0.7 | 30.5 ± 0.7 |' in accuracy
    assert '| SN | moving 0.1 | 5.0 ± 7.1 | 0.0 ± 0.0 |' in difference
    assert '| SN | batch average |' not in difference
    assert others[0].split(':')[0] == '32 images per GPU'
    batch_average.draw_figures(records, tmp_path)
    assert imread(tmp_path / 'course.png').shape[2] == 4
