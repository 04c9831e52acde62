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
    monkeypatch.setattr(sparse.batch_average, 'TASKS', (sparse.TASK,))
    return names


def test_each_network_goes_on_dense_and_sparse(
    repo: Path, tmp_path: Path, trained: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo)
    (tmp_path / 'all.json').write_text('{"images": [], "annotations": []}')
    monkeypatch.setattr(sparse.batch_average, '_ANNOTATIONS', tmp_path / 'all.json')
    runs = sparse.prepare(tmp_path)
    assert trained == [f'cifar-sn_b2_s{seed}' for seed in sparse.SEEDS]
    assert [run.variant for run in runs] == ['dense', 'sparse'] * len(trained)
    for run in runs:
        assert run.options['load_from'] == str(tmp_path / f'cifar-sn_b2_s{run.seed}/epoch_3.pth')
    dense, other = (read_config(run.config, run.options).to_dict() for run in runs[:2])
    assert dense['train_cfg']['max_epochs'] == 1
    assert dense['optim_wrapper']['optimizer']['lr'] == pytest.approx(0.00125)
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
    assert '| dense | 30.0 ± 0.0 | 30.0, 30.0 | 35.0 ± 7.1 | 30.0, 40.0 |' in page
    assert '| sparse | 20.0 ± 0.0 | 20.0, 20.0 | 25.0 ± 7.1 | 20.0, 30.0 |' in page
    assert '| 1 | 0.00 | 0.75 | 0.25 | 0.00 | 0.75 | 0.25 |' in page
    sparse.draw_figures(records, tmp_path)
    assert imread(tmp_path / 'accuracy.png').shape[2] == 4
