"""Every shipped segmenter follows its protocol: images, schedule, rates, data."""

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from mmengine.config import Config

CONFIGS = Path(__file__).parents[2] / 'configs'
SHIPPED = sorted([*CONFIGS.glob('segmentation/*/*.py'), *CONFIGS.glob('demo/deeplab*.py')])
OF_PAPER = sorted(CONFIGS.glob('segmentation/deeplab/*.py'))
OF_TOOLBOX = sorted(CONFIGS.glob('segmentation/deeplabv3*/*.py'))

# ImageNet's means and deviations of [0, 1], times 255, in RGB; what Detectron's GN weights were
# trained on, BGR with Detectron's means, not scaled; and what the authors' segmenter is fed, BGR.
TORCHVISION = ([123.675, 116.28, 103.53], [58.395, 57.12, 57.375], True)
DETECTRON = ([103.53, 116.28, 123.675], [1.0, 1.0, 1.0], False)
AUTHORS = ([102.9801, 115.9465, 122.7717], [1.0, 1.0, 1.0], False)
# The rows of the paper's Table 5: weights and images that each starts from.
ROWS = {
    'syncbn': ('torchvision://resnet50', TORCHVISION),
    'gn': ('open-mmlab://detectron/resnet50_gn', DETECTRON),
    'sn': ('checkpoints/resnet50_sn.pth', AUTHORS),
}
ADE20K = dict(
    type='ADE20KDataset',
    data_root='data/ade/ADEChallengeData2016',
    train=dict(img_path='images/training', seg_map_path='annotations/training'),
    val=dict(img_path='images/validation', seg_map_path='annotations/validation'),
)
CITYSCAPES = dict(
    type='CityscapesDataset',
    data_root='data/cityscapes/',
    train=dict(img_path='leftImg8bit/train', seg_map_path='gtFine/train'),
    val=dict(img_path='leftImg8bit/val', seg_map_path='gtFine/val'),
)
LOAD = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')]
FLIP = dict(type='RandomFlip', prob=0.5)
PACK = dict(type='PackSegInputs')


@cache
def load(file: Path) -> Config:
    """Return a shipped config."""
    return Config.fromfile(file)


@pytest.fixture(scope='module', params=SHIPPED, ids=lambda file: file.stem)
def shipped(request: pytest.FixtureRequest) -> tuple[Path, Config]:
    """Return each shipped config in turn."""
    return request.param, load(request.param)


def of_paper(norm: str, data: str) -> Config:
    """Return the config of a row of the paper's Table 5."""
    (file,) = CONFIGS.glob(f'segmentation/deeplab/deeplab_r50b-d8_{norm}_*_{data}-*.py')
    return load(file)


def test_every_row_of_the_papers_table_is_there_once_for_each_data_set() -> None:
    found = sorted(
        (match[1], file.stem.split('_')[-1].split('-')[0], file.stem.split('_')[2])
        for file in SHIPPED
        if (match := re.match(r'# Table 5 of the paper, row (\d): ', file.read_text()))
    )
    rows = enumerate(ROWS, 1)
    expected = [(str(i), data, norm) for i, norm in rows for data in ('ade20k', 'cityscapes')]
    assert found == expected
    assert len(OF_PAPER) == len(expected)


def test_deeplabs_of_today_are_there_in_both_depths_for_both_data_sets() -> None:
    names = [
        f'{model}_{depth}-d8_sn_{run}'
        for model in ('deeplabv3', 'deeplabv3plus')
        for depth in ('r101b', 'r50b')
        for run in ('4xb2-80k_cityscapes-512x1024', '4xb4-160k_ade20k-512x512')
    ]
    assert [file.stem for file in OF_TOOLBOX] == names


@pytest.mark.parametrize('file', SHIPPED, ids=lambda file: file.stem)
def test_first_lines_say_what_the_config_is_for(file: Path) -> None:
    lines = file.read_text().splitlines()
    assert re.match('# [A-Z]', lines[0])
    # Then comes what it starts from, before anything else.
    assert next(line for line in lines if not line.startswith('#')).startswith('_base_ = ')


def test_no_base_is_of_the_toolbox() -> None:
    files = [*SHIPPED, *CONFIGS.glob('_base_/segmentation/**/*.py')]
    assert len(files) > len(SHIPPED)
    for file in files:
        assert '::' not in file.read_text(), file


def test_package_is_imported_where_there_is_sn(shipped: tuple[Path, Config]) -> None:
    file, config = shipped
    imports = dict(imports=['sn_openmmlab'], allow_failed_imports=False)
    assert (
        config.norm_cfg.type
        == {'sn': 'SN', 'gn': 'GN', 'syncbn': 'SyncBN'}[file.stem.split('_')[2]]
    )
    if config.norm_cfg.type == 'SN':
        assert config.custom_imports == imports


@pytest.mark.parametrize('norm', ROWS)
@pytest.mark.parametrize('data', ['ade20k', 'cityscapes'])
def test_rows_of_the_paper_start_from_weights_of_their_norm(norm: str, data: str) -> None:
    config = of_paper(norm, data)
    checkpoint, images = ROWS[norm]
    backbone = config.model.backbone
    kind = 'SNPretrained' if norm == 'sn' else 'Pretrained'
    assert backbone.init_cfg == dict(type=kind, checkpoint=checkpoint)
    assert config.checkpoint == checkpoint
    processor = config.model.data_preprocessor
    assert (processor.mean, processor.std, processor.bgr_to_rgb) == images
    # Nothing but the heads' norm differs beside.
    plain = [without_row(of_paper(name, data)) for name in ('sn', norm)]
    assert plain[0] == plain[1]


def without_row(config: Config) -> dict:
    """Return a config without its norm, weights and images."""
    settings = config._cfg_dict.to_dict()
    for key in ('norm_cfg', 'checkpoint', 'custom_imports', 'head'):
        settings.pop(key, None)
    model = settings['model']
    for part in ('backbone', 'decode_head', 'auxiliary_head'):
        model[part].pop('norm_cfg')
    model['backbone'].pop('init_cfg')
    for key in ('mean', 'std', 'bgr_to_rgb'):
        model['data_preprocessor'].pop(key)
    return settings


def loader(data: dict, split: str, pipeline: list, **settings: object) -> dict:
    """Return the expected data loader."""
    dataset = dict(
        type=data['type'],
        data_root=data['data_root'],
        data_prefix=data[split],
        pipeline=pipeline,
    )
    return dict(persistent_workers=True, dataset=dataset, **settings)


def resized(**settings: object) -> list[dict]:
    """Return the pipeline of a test at one scale."""
    return [*LOAD[:1], dict(type='Resize', keep_ratio=True, **settings), *LOAD[1:], PACK]


def several(resizes: list[dict]) -> list[dict]:
    """Return the pipeline of a test at several scales."""
    steps = [dict(type='Resize', keep_ratio=True, **settings) for settings in resizes]
    return [*LOAD[:1], dict(type='TestTimeAug', transforms=[steps, LOAD[1:], [PACK]])]


def check_run(config: Config, expected: dict) -> None:
    """Compare all that a run of the paper is made of."""
    expected['val_dataloader'] = expected['test_dataloader'] = loader(
        expected.pop('data'),
        'val',
        expected.pop('test_pipeline'),
        batch_size=1,
        num_workers=4,
        sampler=dict(type='DefaultSampler', shuffle=False),
    )
    expected['val_evaluator'] = dict(type='IoUMetric', iou_metrics=['mIoU'])
    expected['test_evaluator'] = expected['val_evaluator']
    expected['tta_model'] = dict(type='SegTTAModel')
    # Without a key that the expected one lacks: no clipping, no momentum of Nesterov's.
    expected['optim_wrapper'] = dict(
        type='OptimWrapper',
        optimizer=dict(type='SGD', momentum=0.9, weight_decay=1e-4, lr=expected.pop('rate')),
        paramwise_cfg=dict(norm_decay_mult=0.0, bias_decay_mult=0.0),
    )
    settings = config._cfg_dict.to_dict()
    for key, value in expected.items():
        assert settings[key] == value, key
    assert settings['load_from'] is None
    assert settings['resume'] is False


@pytest.mark.parametrize('norm', ROWS)
def test_ade20k_is_trained_and_tested_as_in_the_paper(norm: str) -> None:
    config = of_paper(norm, 'ade20k')
    resize = dict(type='Resize', scale=(450, 450), keep_ratio=False)
    check_run(
        config,
        dict(
            data=ADE20K,
            train_dataloader=loader(
                ADE20K,
                'train',
                [*LOAD, resize, FLIP, PACK],
                batch_size=2,
                num_workers=4,
                sampler=dict(type='InfiniteSampler', shuffle=True),
            ),
            # No long side goes beyond 1000.
            test_pipeline=resized(scale=(1000, 450)),
            tta_pipeline=several([dict(scale=(1000, side)) for side in (300, 400, 500, 600)]),
            rate=0.02,
            param_scheduler=[
                dict(type='PolyLR', power=0.9, eta_min=0.0, begin=0, end=100000, by_epoch=False)
            ],
            train_cfg=dict(type='IterBasedTrainLoop', max_iters=100000, val_interval=10000),
            auto_scale_lr=dict(enable=False, base_batch_size=16),
        ),
    )
    assert config.model.data_preprocessor.size == (450, 450)


@pytest.mark.parametrize('norm', ROWS)
def test_cityscapes_is_trained_and_tested_as_in_the_paper(norm: str) -> None:
    config = of_paper(norm, 'cityscapes')
    crop = dict(type='RandomCrop', crop_size=(713, 713))
    poly = dict(type='PolyLR', power=0.9, eta_min=0.0, begin=0, end=700, by_epoch=True)
    check_run(
        config,
        dict(
            data=CITYSCAPES,
            train_dataloader=loader(
                CITYSCAPES,
                'train',
                [*LOAD, crop, FLIP, PACK],
                batch_size=1,
                num_workers=2,
                sampler=dict(type='DefaultSampler', shuffle=True),
            ),
            test_pipeline=resized(scale=(2048, 1024)),
            tta_pipeline=several([dict(scale_factor=ratio) for ratio in (1.0, 1.25, 1.5, 1.75)]),
            rate=0.01,
            param_scheduler=[dict(poly, convert_to_iter_based=True)],
            train_cfg=dict(type='EpochBasedTrainLoop', max_epochs=700, val_interval=50),
            auto_scale_lr=dict(enable=False, base_batch_size=8),
        ),
    )
    assert config.model.data_preprocessor.size == (713, 713)


@pytest.mark.parametrize('file', OF_PAPER, ids=lambda file: file.stem)
def test_heads_of_the_paper_are_one_convolution_and_alike(file: Path) -> None:
    model = load(file).model
    assert model.test_cfg == dict(mode='whole')
    place = dict(in_channels=1024, in_index=2)
    for head, weight in ((model.decode_head, 1.0), (model.auxiliary_head, 0.4)):
        assert head == dict(
            type='FCNHead',
            channels=512,
            num_convs=1,
            concat_input=False,
            dropout_ratio=0,
            num_classes=150 if 'ade20k' in file.stem else 19,
            norm_cfg=load(file).norm_cfg,
            align_corners=False,
            loss_decode=dict(type='CrossEntropyLoss', use_sigmoid=False, loss_weight=weight),
            **(dict(in_channels=2048, in_index=3) if weight == 1 else place),
        )


@pytest.mark.parametrize('file', OF_TOOLBOX, ids=lambda file: file.stem)
def test_deeplabs_of_today_are_the_toolboxes_but_for_the_norm(file: Path) -> None:
    ours = load(file)
    name = file.name.replace('_sn_', '_').replace('b-d8', '-d8')
    theirs = Config.fromfile(
        Path(find_spec('mmseg').origin).parent / '.mim/configs' / file.parent.name / name
    )
    for key in ('train_cfg', 'val_cfg', 'test_cfg', 'param_scheduler', 'default_hooks', 'env_cfg'):
        assert ours[key] == theirs[key], key
    for key in ('visualizer', 'log_processor', 'tta_model', 'val_evaluator', 'test_evaluator'):
        assert ours[key] == theirs[key], key
    assert ours.load_from is theirs.load_from is None
    assert ours.resume is theirs.resume is False
    assert ours.auto_scale_lr.enable is False
    wrapper = dict(theirs.optim_wrapper, paramwise_cfg=dict(norm_decay_mult=0.0))
    assert wrapper.pop('clip_grad') is None
    assert ours.optim_wrapper == wrapper
    for part in ('train', 'val', 'test'):
        assert plain(ours[f'{part}_dataloader']) == plain(theirs[f'{part}_dataloader'])
    assert plain(ours.tta_pipeline) == plain(theirs.tta_pipeline)
    model, theirs = ours.model, theirs.model
    for key in ('type', 'data_preprocessor', 'train_cfg', 'test_cfg'):
        assert model[key] == theirs[key], key
    for part in ('backbone', 'decode_head', 'auxiliary_head'):
        settings = [dict(config[part]) for config in (model, theirs)]
        assert settings[0].pop('norm_cfg') == dict(type='SN', correction=1)
        assert settings[1].pop('norm_cfg') == dict(type='SyncBN', requires_grad=True)
        if part == 'backbone':
            # The authors' weights are of the stem with one convolution.
            depth = settings[0]['depth']
            assert settings[0].pop('init_cfg') == dict(
                type='SNPretrained', checkpoint=f'checkpoints/resnet{depth}_sn.pth'
            )
            assert (settings[0].pop('type'), settings[1].pop('type')) == ('ResNet', 'ResNetV1c')
        assert settings[0] == settings[1], part


def plain(value: object) -> object:
    """Return a config without defaults and without what ADE20K's dataset class sets."""
    if isinstance(value, dict):
        defaults = dict(reduce_zero_label=True, backend_args=None, direction='horizontal')
        return {
            key: plain(item)
            for key, item in value.items()
            if key not in defaults or item != defaults[key]
        }
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize('file', [*OF_PAPER, *OF_TOOLBOX], ids=lambda file: file.stem)
def test_data_lie_in_the_toolboxes_folders(file: Path) -> None:
    config = load(file)
    data = ADE20K if 'ade20k' in file.stem else CITYSCAPES
    for part in ('train', 'val', 'test'):
        dataset = config[f'{part}_dataloader'].dataset
        assert (dataset.type, dataset.data_root) == (data['type'], data['data_root'])
        assert dataset.data_prefix == data['train' if part == 'train' else 'val']
        classes = 150 if data is ADE20K else 19
        assert config.model.decode_head.num_classes == classes
        assert config.model.auxiliary_head.num_classes == classes


def test_every_run_saves_and_evaluates_at_its_end(shipped: tuple[Path, Config]) -> None:
    _, config = shipped
    by_epoch = config.train_cfg.type == 'EpochBasedTrainLoop'
    end = config.train_cfg.max_epochs if by_epoch else config.train_cfg.max_iters
    assert config.default_hooks.checkpoint.get('by_epoch', True) == by_epoch
    assert config.log_processor.by_epoch == by_epoch
    assert config.default_hooks.logger.get('log_metric_by_epoch', True) == by_epoch
    sampler = 'DefaultSampler' if by_epoch else 'InfiniteSampler'
    assert config.train_dataloader.sampler.type == sampler
    for interval in (config.train_cfg.val_interval, config.default_hooks.checkpoint.interval):
        assert end % interval == 0
    assert config.param_scheduler[-1].end == end
    assert config.val_evaluator == dict(type='IoUMetric', iou_metrics=['mIoU'])


def test_batch_is_what_the_name_says(shipped: tuple[Path, Config]) -> None:
    file, config = shipped
    if match := re.search(r'_(\d)xb(\d)-', file.stem):
        gpus, images = map(int, match.groups())
        assert config.train_dataloader.batch_size == images
        assert config.auto_scale_lr.base_batch_size == gpus * images
    else:
        assert config.train_dataloader.batch_size == config.auto_scale_lr.base_batch_size == 2
    if match := re.search(r'-(\d+)x(\d+)$', file.stem):
        assert config.model.data_preprocessor.size == tuple(map(int, match.groups()))
