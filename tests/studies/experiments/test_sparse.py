"""The experiment on sparse SN: the planned runs, and the tables of known records."""

from pathlib import Path

import pytest
from matplotlib.image import imread

from sn_openmmlab.runs.config import read_config
from studies.experiments import sparse
from studies.experiments.records import Record

pytest.importorskip('mmpretrain')


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the runs that were trained first, each to an empty checkpoint."""
    names: list[str] = []

    def train(runs: list, script: Path, work_dir: Path, jobs: int) -> None:
        for run in runs:
            names.append(run.name)
            (work_dir / run.name).mkdir()
            (work_dir / run.name / 'epoch_3.pth').touch()
            (work_dir / run.name / 'last_checkpoint').write_text('epoch_3.pth')

    monkeypatch.setattr(sparse, 'train_missing', train)
    return names


def test_each_network_goes_on_dense_and_sparse(
    repo: Path, tmp_path: Path, trained: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo)
    runs = sparse.prepare(tmp_path)
    assert sorted(trained) == sorted(
        f'sn_b{per_gpu}_s{seed}' for per_gpu in (2, 32) for seed in range(3)
    )
    assert [run.variant for run in runs] == ['dense', 'sparse'] * len(trained)
    for run in runs:
        start = tmp_path / f'sn_b{run.batch}_s{run.seed}/epoch_3.pth'
        assert run.options['load_from'] == str(start)
    dense, other = (read_config(run.config, run.options).to_dict() for run in runs[:2])
    assert dense['train_cfg']['max_epochs'] == 1
    assert dense['optim_wrapper']['optimizer']['lr'] == pytest.approx(0.02)
    assert other['custom_hooks'].pop(0) == {'type': 'SparsifyHook', 'begin': 0}
    assert other == dense


def make(variant: str, seed: int, accuracy: float) -> Record:
    choices = {'in': 0.0, 'ln': 0.75, 'bn': 0.25}
    course = [accuracy, accuracy + 10 * seed]
    metrics = {'batch average/accuracy/top1': course}
    return Record(variant, 2, seed, metrics, {'all': {'mean': choices, 'var': choices}})


def test_tables_and_picture_of_known_records(tmp_path: Path) -> None:
    cases = (('dense', 30.0), ('sparse', 20.0))
    records = [make(variant, seed, value) for seed in (0, 1) for variant, value in cases]
    page = sparse.all_tables(records, {'device': 'abacus', 'threads': 1, 'torch': '9'})
    assert '| dense | 2 | 30.0 ± 0.0 | 30.0, 30.0 | 35.0 ± 7.1 | 30.0, 40.0 |' in page
    assert '| sparse | 2 | 20.0 ± 0.0 | 20.0, 20.0 | 25.0 ± 7.1 | 20.0, 30.0 |' in page
    shares = ['0.00 ± 0.00', '0.75 ± 0.00', '0.25 ± 0.00']
    assert ' | '.join(['| 2', *shares, *shares]) in page
    sparse.draw_figures(records, tmp_path)
    assert imread(tmp_path / 'accuracy.png').shape[2] == 4
