"""Longer trainings of the detector: the planned runs, and the tables of known records."""

from pathlib import Path

import pytest
from matplotlib.image import imread
from mmengine.config import Config

pytest.importorskip('mmdet')

from sn_openmmlab.errors import UsageError
from studies.experiments import longer_detection
from studies.experiments.longer_detection import (
    NORMS,
    chosen_rates,
    detector_config,
    final_config,
    final_runs,
    pilot_runs,
)
from studies.experiments.records import Record
from tests.studies.experiments.settings import without_norms

AP = 'coco/bbox_mAP'


@pytest.fixture
def at_root(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repo)


def test_runs_differ_in_the_norm_and_the_learning_rate_alone(at_root: None) -> None:
    short = [without_norms(detector_config(norm, 4, 0.02).to_dict()) for norm in NORMS]
    assert short[0] == short[1] == short[2]
    config = final_config('bn', 0.04)
    assert config.train_dataloader.batch_size == 2
    assert config.optim_wrapper.optimizer.lr == 0.04
    assert config.train_cfg.max_epochs == 3 * short[0]['train_cfg']['max_epochs'] == 12
    assert config.param_scheduler[1].milestones == [9]


def test_seed_that_chooses_the_rate_is_none_of_the_others() -> None:
    pilots, finals = pilot_runs(Path()), final_runs(Path())
    assert {run.seed for run in pilots}.isdisjoint(run.seed for run in finals)
    assert len(pilots) == 12
    assert sorted(run.seed for run in finals if run.variant == 'bn') == [0, 1, 2]


def pilot(norm: str, rate: float, ap: float) -> Record:
    return Record(f'{norm}-{rate}', 2, 3, {AP: [ap]}, {})


def final(norm: str, seed: int, last: float) -> Record:
    statistics = ['moving 0.1'] if norm == 'gn' else ['moving 0.1', 'batch average']
    metrics = {f'{name}/{AP}': [0.1, 0.2, 0.3, last + 0.1 * i] for i, name in enumerate(statistics)}
    ratios = {kind: {'in': 0.5, 'ln': 0.3, 'bn': 0.2} for kind in ('mean', 'var')}
    return Record(norm, 2, seed, metrics, {'all': ratios} if norm == 'sn' else {})


RECORDS = [
    *(pilot('sn', rate, ap) for rate, ap in ((0.02, 0.3), (0.04, 0.5), (0.08, 0.4))),
    *(pilot('gn', rate, ap) for rate, ap in ((0.02, 0.5), (0.04, 0.5), (0.08, 0.4))),
    *(pilot('bn', rate, ap) for rate, ap in ((0.02, 0.3), (0.04, 0.2), (0.08, 0.4))),
    *(final(norm, seed, 0.4 + 0.01 * seed) for seed in range(3) for norm in NORMS),
]


def test_best_learning_rate_of_each_norm_is_chosen() -> None:
    assert chosen_rates(RECORDS) == {'sn': 0.04, 'gn': 0.02, 'bn': 0.08}


def test_tables_have_the_means_of_known_records() -> None:
    page = longer_detection.all_tables(RECORDS, {'device': 'a CPU', 'threads': 1, 'torch': '2'})
    assert '| BN, batch average | 51.0 ± 1.0 | 50.0, 51.0, 52.0 |' in page
    assert '| GN | 41.0 ± 1.0 | 40.0, 41.0, 42.0 |' in page
    assert '| SN | 30.0 | 50.0 | 40.0 |' in page
    assert '| BN | moving 0.1 | 10.0 ± 0.0 | 20.0 ± 0.0 | 30.0 ± 0.0 | 41.0 ± 1.0 |' in page


def test_figures_are_drawn(tmp_path: Path) -> None:
    longer_detection.draw_figures(RECORDS, tmp_path)
    for name in ('course', 'ap'):
        assert imread(tmp_path / f'{name}.png').std() > 0.01


def test_long_trainings_follow_at_the_chosen_rates(at_root: None, tmp_path: Path) -> None:
    runs = longer_detection.follow(tmp_path, RECORDS[:9])
    rates = {run.variant: Config.fromfile(run.config).optim_wrapper.optimizer.lr for run in runs}
    assert rates == {'sn': 0.04, 'gn': 0.02, 'bn': 0.08}
    assert len(runs) == 9


def test_missing_data_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match='run make data first'):
        longer_detection.prepare(tmp_path / 'work')
