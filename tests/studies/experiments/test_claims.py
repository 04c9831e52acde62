"""The experiment on the paper's claims: the planned runs, and the tables of known records."""

import json
from collections import Counter
from pathlib import Path

import pytest
from matplotlib.image import imread

pytest.importorskip('mmpretrain')

from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmengine.utils import import_modules_from_strings
from mmpretrain.registry import MODELS

from sn_openmmlab.analysis.importance import importance_ratios
from studies.experiments import claims
from studies.experiments.claims_runs import (
    EPOCHS,
    PER_GPU,
    SETTINGS,
    SINGLE,
    TOTAL,
    planned_runs,
    prepare,
    training_config,
)
from studies.experiments.records import Record
from studies.presentation.experiment_tables import ACCURACY
from tests.studies.experiments.settings import without_norms


def test_every_norm_has_three_seeds_at_every_number_of_images_per_gpu(tmp_path: Path) -> None:
    runs = planned_runs(tmp_path)
    seeds = Counter((run.variant, run.batch) for run in runs)
    assert set(seeds.values()) == {3}
    assert {n for norm, n in seeds if norm == 'sn'} == set(PER_GPU) == {1, 2, 4, 32}
    assert all((norm, n) in seeds for norm in ('bn', 'brn') for n in PER_GPU)
    assert all((name, 2) in seeds for name in (*SINGLE, *SETTINGS))
    assert len({run.name for run in runs}) == len(runs)


@pytest.fixture
def at_root(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repo)


def test_runs_differ_in_the_norm_alone(at_root: None) -> None:
    """The gradients of a step are those of as many images, at one learning rate."""
    names = [('sn', 32), ('sn', 1), ('bn', 2), ('brn', 4), ('gn', 2), ('sn-gn', 2)]
    settings = [without_norms(training_config(*name).to_dict()) for name in names]
    assert all(other == settings[0] for other in settings)
    config = training_config('sn', 4)
    assert config.train_dataloader.batch_size == TOTAL == 64
    assert config.model.backbone.norm_cfg.gpus * 4 == TOTAL
    ends = [schedule.end for schedule in config.param_scheduler]
    assert ends[-1] == EPOCHS * (50000 // 64)


def test_settings_change_control_parameters_alone(at_root: None) -> None:
    changed = training_config('sn-rate-x10', 2)
    keys = changed.optim_wrapper.paramwise_cfg.custom_keys
    assert set(keys) == {'mean_weight', 'var_weight'}
    assert keys.mean_weight.lr_mult == 10
    assert training_config('sn-no-decay', 2).optim_wrapper.paramwise_cfg.custom_keys == {
        name: dict(decay_mult=0) for name in keys
    }


def test_network_has_nine_layers_of_each_norm(at_root: None) -> None:
    import_modules_from_strings(training_config('sn', 2).custom_imports.imports)
    init_default_scope('mmpretrain')
    for variant, per_gpu in (('sn', 2), ('sn-gn', 2), ('sn-in-ln', 2)):
        model = MODELS.build(training_config(variant, per_gpu).model)
        rows = importance_ratios(model)
        assert len(rows) == 9
        assert model.backbone.conv1.stride == (2, 2)


def record(variant: str, batch: int, seed: int, last: float) -> Record:
    scopes = ('in', 'gn', 'bn') if variant == 'sn-gn' else ('in', 'ln', 'bn')
    ratios = {kind: dict(zip(scopes, (0.5, 0.3, 0.2), strict=True)) for kind in ('mean', 'var')}
    parts = {'layer1': ratios, 'all': ratios} if variant.startswith('sn') else {}
    return Record(variant, batch, seed, {ACCURACY: [last / 2, last]}, parts)


RECORDS = [
    record(run.variant, run.batch, run.seed, 60 + run.batch + run.seed)
    for run in planned_runs(Path())
]


def test_tables_have_the_means_of_known_records(tmp_path: Path) -> None:
    page = claims.all_tables(RECORDS, {'device': 'a CPU', 'threads': 1, 'torch': '2'})
    assert '| BN | 62.0 ± 1.0 | 63.0 ± 1.0 | 65.0 ± 1.0 | 93.0 ± 1.0 |' in page
    assert '| SN without `bn` | 63.0 ± 1.0 | 62.0, 63.0, 64.0 |' in page
    assert '| `gn` of 8 groups in place of `ln` | 0.500 ± 0.000 | 0.300 ± 0.000 |' in page
    assert '| BRN | 4 | 1 | 32.5 | 65.0 |' in page


def test_figures_are_drawn(tmp_path: Path) -> None:
    claims.draw_figures(RECORDS, tmp_path)
    for name in ('accuracy', 'ratios'):
        assert imread(tmp_path / f'{name}.png').std() > 0.01


def test_configs_are_written_for_every_run(at_root: None, tmp_path: Path) -> None:
    runs = prepare(tmp_path / 'work')
    for run in runs[:3]:
        assert Config.fromfile(run.config).train_dataloader.dataset.type == 'CifarImages'
    assert json.dumps(runs[0].options) == '{"randomness.seed": 0}'
