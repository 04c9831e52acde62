"""The fine-tunings from ImageNet weights: the planned runs, and the tables of known records."""

from copy import deepcopy
from pathlib import Path

import pytest
from mmengine.config import Config

from sn_openmmlab.runs.config import read_config
from studies.experiments import from_imagenet
from studies.experiments.records import Record

STARTS = {'frozen-bn', 'bn', 'gn', 'sn-0.90', 'sn-0.99', 'sn-0.90-fitted'}


@pytest.fixture(scope='module')
def configs(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Config]:
    """The config of each run by its name, read as tools/train.py does."""
    folder = tmp_path_factory.mktemp('plan')
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(repo)
        runs = from_imagenet.prepare(folder)
    return {run.name: read_config(run.config, run.options) for run in runs}


def test_three_seeds_of_every_start_on_both_data_sets(configs: dict[str, Config]) -> None:
    starts = {name.rsplit('_b2_s', 1)[0] for name in configs}
    raccoon = {start.removeprefix('raccoon-') for start in starts if 'raccoon' in start}
    bccd = {start.removeprefix('bccd-') for start in starts if 'bccd' in start}
    assert raccoon == STARTS
    assert {'frozen-bn', 'sn-0.90', 'sn-0.99'} <= bccd <= STARTS
    assert len(configs) == 3 * len(starts)


def test_runs_differ_in_the_backbone_alone(configs: dict[str, Config]) -> None:
    for data in ('raccoon', 'bccd'):
        rest = []
        for name, config in configs.items():
            if not name.startswith(data):
                continue
            settings = deepcopy(config.to_dict())
            del settings['model']['backbone'], settings['randomness']
            rest.append(settings)
        assert all(settings == rest[0] for settings in rest)


def test_each_start_changes_the_backbone(configs: dict[str, Config]) -> None:
    def backbone(start: str) -> dict:
        return configs[f'raccoon-{start}_b2_s1'].model.backbone

    assert backbone('frozen-bn').norm == 'frozen-BN'
    assert (backbone('bn').norm, backbone('gn').norm) == ('BN', 'GN')
    for start, ratio in (('sn-0.90', 0.9), ('sn-0.99', 0.99)):
        found = backbone(start)
        assert (found.norm, found.start.batch_ratio) == ('SN', ratio)
        assert 'fit_to' not in found
    fitted = backbone('sn-0.90-fitted')
    assert (fitted.start.batch_ratio, fitted.fit_to) == (0.9, 'data/raccoon/images')


def test_both_data_sets_are_trained_on_at_two_images(configs: dict[str, Config]) -> None:
    for data, classes in (('raccoon', 1), ('bccd', 3)):
        config = configs[f'{data}-bn_b2_s2' if data == 'raccoon' else 'bccd-frozen-bn_b2_s2']
        assert config.train_dataloader.batch_size == 2
        for part in ('train', 'val', 'test'):
            dataset = config[f'{part}_dataloader'].dataset
            assert dataset.data_root == f'data/{data}/'
            assert dataset.ann_file == f'annotations/{"train" if part == "train" else "val"}.json'
            assert len(dataset.metainfo.classes) == classes
        assert config.val_evaluator.ann_file == f'data/{data}/annotations/val.json'
        assert config.model.roi_head.bbox_head.num_classes == classes
        assert config.randomness.seed == 2
        fall = config.param_scheduler[1]
        images = {'raccoon': 150, 'bccd': 205}[data]
        assert fall.end == config.train_cfg.max_epochs * images // 2
        assert config.train_cfg.val_interval == config.train_cfg.max_epochs


def record(variant: str, seed: int, ap: float, batch_ratio: float | None = None) -> Record:
    metrics = {f'coco/bbox_mAP{end}': [0.1, ap + i / 8] for i, end in enumerate(('', '_50', '_75'))}
    shares = {'in': 0.0, 'ln': 0.0, 'bn': batch_ratio}
    ratios = {} if batch_ratio is None else {'backbone': {'mean': shares, 'var': shares}}
    return Record(variant, 2, seed, metrics, ratios)


@pytest.fixture
def records() -> list[Record]:
    pairs = [
        (f'{data}-{start}', ratio)
        for data in ('raccoon', 'bccd')
        for start, ratio in (('frozen-bn', None), ('sn-0.99', 0.75))
    ]
    return [
        record(variant, seed, 0.5 + seed / 4, ratio) for variant, ratio in pairs for seed in (0, 1)
    ]


def test_tables_show_ap_of_each_start_and_ratios_of_sn(records: list[Record]) -> None:
    machine = {'device': 'a processor', 'threads': 1, 'torch': '2.13.0'}
    page = from_imagenet.all_tables(records, machine)
    # Mean and standard deviation of 50 and 75; AP50 and AP75 are 12.5 and 25 higher.
    row = '62.5 ± 17.7 | 75.0 ± 17.7 | 87.5 ± 17.7 | 50.0, 75.0 |'
    assert page.count(f'| frozen BN | {row}') == 2
    assert page.count(f'| SN, `bn` at 0.99 | {row}') == 2
    assert page.count('| SN, `bn` at 0.99 | 0.750 ± 0.000 | 0.750 ± 0.000 |') == 2
    assert 'a processor' in page and 'over 2 seeds' in page


def test_a_picture_of_each_data_set(records: list[Record], tmp_path: Path) -> None:
    from_imagenet.draw_figures(records, tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {'ap_raccoon.png', 'ap_bccd.png'}


def test_options_reach_the_tool_as_they_are(configs: dict[str, Config]) -> None:
    # mmengine takes spaces out of the values on a command line.
    assert not any(' ' in str(v) for o in from_imagenet.STARTS.values() for v in o.values())
