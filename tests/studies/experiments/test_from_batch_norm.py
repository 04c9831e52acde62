"""The fine-tunings from BatchNorm: the planned runs, and the tables of known records."""

from copy import deepcopy
from pathlib import Path

import pytest
from matplotlib.image import imread
from mmengine.config import Config

from sn_openmmlab.runs.config import read_config
from studies.experiments import from_batch_norm
from studies.experiments.records import Record


@pytest.fixture(scope='module')
def config_file(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The config that all runs share."""
    file = tmp_path_factory.mktemp('plan') / 'fine_tuning.py'
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(repo)
        from_batch_norm.fine_tuning_config(Path('bn.pth')).dump(file)
    return file


@pytest.fixture(scope='module')
def configs(config_file: Path) -> dict[str, Config]:
    """The config of each run by its name, read as tools/train.py does."""
    runs = from_batch_norm.fine_tunings(str(config_file))
    return {run.name: read_config(run.config, run.options) for run in runs}


def test_three_seeds_of_every_start(configs: dict) -> None:
    starts = {name.rsplit('_b2_s', 1)[0] for name in configs}
    assert {'scratch', 'frozen-bn', 'sn-0.33', 'sn-1.00'} < starts
    longer = {start.removesuffix('-long') for start in starts if start.endswith('-long')}
    assert {'scratch', 'frozen-bn'} < longer < starts
    assert len(configs) == 3 * len(starts)
    for name, config in configs.items():
        assert config.randomness.seed == int(name[-1])
        assert config.train_dataloader.batch_size == 2
        assert config.default_scope == 'mmdet'


def test_backbone_starts_as_its_name_says(configs: dict) -> None:
    backbone = configs['scratch_b2_s0'].model.backbone
    assert (backbone.init_cfg, backbone.norm_cfg.type) == (None, 'SN')
    frozen = configs['frozen-bn_b2_s1'].model.backbone
    assert frozen.norm_cfg == dict(type='BN', requires_grad=False)
    assert frozen.norm_eval
    assert (frozen.init_cfg.type, frozen.init_cfg.checkpoint) == ('SNPretrained', 'bn.pth')
    third = configs['sn-0.33_b2_s2'].model.backbone
    assert third.norm_cfg.type == 'SN'
    assert third.init_cfg == dict(type='SNPretrained', checkpoint='bn.pth', batch_ratio=1 / 3)
    assert configs['sn-1.00_b2_s0'].model.backbone.init_cfg.batch_ratio == 1


def test_runs_of_a_length_differ_in_the_backbone_and_the_seed_alone(configs: dict) -> None:
    def without(config: Config) -> dict:
        kept = deepcopy(config.to_dict())
        del kept['model']['backbone'], kept['randomness']
        return kept

    for long in (False, True):
        rests = [without(config) for name, config in configs.items() if ('long' in name) == long]
        assert all(rest == rests[0] for rest in rests)
        assert rests[0]['model']['neck']['norm_cfg']['type'] == 'SN'
    for name in [name for name in configs if 'long' in name]:
        assert configs[name].model == configs[name.replace('-long', '')].model


@pytest.mark.parametrize(('name', 'epochs'), [('scratch_b2_s0', 2), ('scratch-long_b2_s0', 4)])
def test_learning_rate_falls_before_the_end(name: str, epochs: int, configs: dict) -> None:
    config = configs[name]
    assert (config.train_cfg.max_epochs, config.train_cfg.val_interval) == (epochs, epochs)
    steps = epochs * 400 // 2
    warm_up, fall = config.param_scheduler
    assert (warm_up.end, fall.milestones, fall.end) == (steps / 4, [steps * 3 // 4], steps)
    assert not fall.by_epoch
    assert not warm_up.by_epoch


def make(variant: str, seed: int, ap: float, bn: float | None = None) -> Record:
    metrics = {'coco/bbox_mAP': [ap], 'coco/bbox_mAP_50': [2 * ap], 'coco/bbox_mAP_75': [ap / 2]}
    ratios = {kind: {'in': 0.1, 'ln': 0.2, 'bn': bn} for kind in ('mean', 'var')}
    return Record(variant, 2, seed, metrics, {} if bn is None else {'backbone': ratios})


def test_tables_and_picture_of_known_records(tmp_path: Path) -> None:
    records = [
        make(variant, seed, ap + 0.1 * seed, bn)
        for seed in (0, 1, 2)
        for variant, ap, bn in (
            ('scratch', 0.1, 0.3),
            ('frozen-bn', 0.2, None),
            ('sn-0.80', 0.3, 0.7),
            ('sn-0.80-long', 0.4, 0.6),
        )
    ]
    page = from_batch_norm.all_tables(records, {'device': 'abacus', 'threads': 1, 'torch': '9'})
    assert (
        '| SN from scratch | 2 | 20.0 ± 10.0 | 40.0 ± 20.0 | 10.0 ± 5.0 | 10.0, 20.0, 30.0 |'
        in page
    )
    assert '| frozen BN | 2 | 30.0 ± 10.0 |' in page
    assert '| SN, `bn` at 0.80 | 2 | 40.0 ± 10.0 |' in page
    assert '| SN, `bn` at 0.80 | 4 | 50.0 ± 10.0 |' in page
    assert '| SN, `bn` at 0.80 | 2 | 0.700 ± 0.000 | 0.700 ± 0.000 |' in page
    assert '| SN, `bn` at 0.80 | 4 | 0.600 ± 0.000 | 0.600 ± 0.000 |' in page
    assert page.count('| frozen BN |') == 1
    from_batch_norm.draw_figures(records, tmp_path)
    assert imread(tmp_path / 'ap.png').shape[2] == 4
