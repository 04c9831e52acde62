"""The ImageNet configs train by the protocol of the paper's App. C, in the settings of Table 2."""

import re
from pathlib import Path

import pytest
from mmengine.config import Config

FOLDER = Path(__file__).parents[2] / 'configs/classification/resnet'
# Table 2: GPUs, and images on each, with the learning rate that is 0.1 at 256 images and otherwise
# in proportion, as the authors' releases of (8,32), (8,4) and (8,1) give it.
RATES = {
    (8, 32): 0.1,
    (8, 16): 0.05,
    (8, 8): 0.025,
    (8, 4): 0.0125,
    (8, 2): 0.00625,
    (1, 16): 0.00625,
    (1, 32): 0.0125,
    (8, 1): 0.003125,
    (1, 8): 0.003125,
}
NORMS = ('bn', 'gn', 'sn')
TABLE = [f'resnet50_{norm}_{g}xb{n}_in1k' for g, n in RATES for norm in NORMS]
SN = dict(type='SN', correction=1)
OTHERS = ('resnet50_sn-g2_8xb32_in1k', 'resnet101_sn_8xb32_in1k')
# What stands for the norm of MMPretrain's ResNet, which is BN unless a config says otherwise.
EXPECTED = {
    'bn': None,
    'gn': dict(type='GN', num_groups=32),
    'sn': SN,
    'sn-g2': dict(SN, num_ratio_groups=2),
}


def test_every_cell_of_the_table_has_its_config() -> None:
    names = {file.stem for file in FOLDER.glob('*.py')}
    assert names == {*TABLE, *OTHERS}
    assert len(TABLE) == 27


@pytest.fixture(scope='module', params=[*TABLE, *OTHERS])
def shipped(request: pytest.FixtureRequest) -> tuple[str, Config]:
    """Return the name of each config in turn, and its content."""
    return request.param, plain(Config.fromfile(FOLDER / f'{request.param}.py'))


def plain(config: Config) -> Config:
    """Return a config without the marks of the toolbox whose configs it inherits from."""
    return Config(_unmarked(config.to_dict()))


def _unmarked(value: object) -> object:
    if isinstance(value, dict):
        return {key: _unmarked(item) for key, item in value.items() if key != '_scope_'}
    return [_unmarked(item) for item in value] if isinstance(value, list) else value


def test_batch_and_learning_rate_are_of_the_setting(shipped: tuple[str, Config]) -> None:
    name, config = shipped
    gpus, images = map(int, re.search(r'_(\d+)xb(\d+)_', name).groups())
    assert config.train_dataloader.batch_size == images
    assert config.auto_scale_lr.base_batch_size == gpus * images
    assert config.optim_wrapper.optimizer.lr == RATES[gpus, images]


def test_all_parameters_decay_and_the_rate_falls_three_times(shipped: tuple[str, Config]) -> None:
    _, config = shipped
    optimizer = {**config.optim_wrapper.optimizer}
    del optimizer['lr']
    assert optimizer == dict(type='SGD', momentum=0.9, weight_decay=1e-4)
    # No part has another weight decay or learning rate.
    assert set(config.optim_wrapper) == {'optimizer'}
    assert config.param_scheduler == dict(
        type='MultiStepLR', by_epoch=True, milestones=[30, 60, 90], gamma=0.1
    )
    assert config.train_cfg == dict(by_epoch=True, max_epochs=100, val_interval=1)


def test_network_is_the_papers_and_starts_from_random_weights(shipped: tuple[str, Config]) -> None:
    name, config = shipped
    norm = name.split('_')[1]
    expected = EXPECTED[norm]
    if name == 'resnet50_sn_8xb1_in1k':
        expected = dict(SN, scopes=('in', 'ln'))
    backbone = {**config.model.backbone}
    assert backbone.pop('norm_cfg', None) == expected
    assert backbone == dict(
        type='ResNet',
        depth=101 if '101' in name else 50,
        num_stages=4,
        out_indices=(3,),
        style='pytorch',
        zero_init_residual=False,
    )
    assert config.load_from is None
    assert config.model.get('init_cfg') is None
    imports = dict(imports=['sn_openmmlab'], allow_failed_imports=False)
    assert config.get('custom_imports') == (imports if norm.startswith('sn') else None)


def test_data_are_those_of_imagenet_in_its_usual_folders(shipped: tuple[str, Config]) -> None:
    _, config = shipped
    for part, split in (('train', 'train'), ('val', 'val'), ('test', 'val')):
        dataset = config[f'{part}_dataloader'].dataset
        assert (dataset.type, dataset.data_root, dataset.split) == (
            'ImageNet',
            'data/imagenet',
            split,
        )
    assert config.data_preprocessor == dict(
        num_classes=1000,
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        to_rgb=True,
    )


def test_images_are_augmented_in_training_and_center_crops_in_evaluation(
    shipped: tuple[str, Config],
) -> None:
    _, config = shipped
    steps = config.train_dataloader.dataset.pipeline
    assert [step.type for step in steps] == [
        'LoadImageFromFile',
        'RandomResizedCrop',
        'RandomFlip',
        'Lighting',
        'PackInputs',
    ]
    assert steps[1].scale == 224
    assert config.val_dataloader.dataset.pipeline == [
        dict(type='LoadImageFromFile'),
        dict(type='ResizeEdge', scale=256, edge='short'),
        dict(type='CenterCrop', crop_size=224),
        dict(type='PackInputs'),
    ]
    assert config.test_dataloader == config.val_dataloader
    assert config.val_evaluator == config.test_evaluator == dict(type='Accuracy', topk=(1, 5))
