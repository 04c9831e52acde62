"""Every shipped detector follows the protocol of its row: images, schedule, rates, data."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from mmengine.config import Config

CONFIGS = Path(__file__).parents[2] / 'configs'
# tests/configs/test_released_detectors.py has those of the released detectors.
SHIPPED = sorted(
    file
    for file in (*CONFIGS.glob('detection/*/*.py'), *CONFIGS.glob('demo/*rcnn*.py'))
    if file.parent.name != 'released'
)
OF_COCO = [file for file in SHIPPED if file.stem.endswith('_coco')]
BASELINES = [file for file in SHIPPED if re.search('_(gn|bn)-all_.*(digits|bccd)', file.stem)]

# Images of train2017 that have boxes; what MMDetection trains on.
COCO_IMAGES = 117266
# The paper's App. D and Detectron's schedules that it names: iterations at which the rate falls
# and training ends, images per iteration, rate.
SCHEDULES = {
    '1x': ([60000, 80000, 90000], 16, 0.02),
    '2x': ([120000, 160000, 180000], 16, 0.02),
    'scratch-3x': ([210000, 250000, 270000], 16, 0.02),
    '8xb1-2x': ([240000, 320000, 360000], 8, 0.01),
    '4xb3-120k': ([80000, 120000], 12, 0.01),
    'scratch-4xb3-120k': ([80000, 120000], 12, 0.01),
}
# Half the rate in MMDetection's own configs of these.
DENSE = ('RetinaNet', 'FCOS')
# How the rows are called in the file names, in the order of the paper's tables.
ROWS = {
    3: ['bn-frozen_1x', 'gn-head_1x', 'sn-head_1x', 'gn-all_1x', 'sn-all_1x'],
    4: [
        'bn-frozen_2x',
        'gn-head_2x',
        'sn-head_2x',
        'gn-all_2x',
        'gn-backbone_sn-head_2x',
        'sn-all_2x',
    ],
    7: [
        'bn-frozen_4xb3-120k',
        'bn_4xb3-120k',
        'gn_4xb3-120k',
        'sn_4xb3-120k',
        'bn_scratch-4xb3-120k',
        'gn_scratch-4xb3-120k',
        'sn_scratch-4xb3-120k',
    ],
}
DETECTORS = {3: 'faster-rcnn_r50_fpn', 4: 'mask-rcnn_r50_fpn', 7: 'faster-rcnn_r50_c4'}

# ImageNet's means and deviations of [0, 1], times 255, in RGB, and what Detectron's GN weights
# were trained on: BGR with Detectron's means, not scaled.
TORCHVISION = ([123.675, 116.28, 103.53], [58.395, 57.12, 57.375], True)
DETECTRON = ([103.530, 116.280, 123.675], [1.0, 1.0, 1.0], False)


@cache
def load(file: Path) -> Config:
    """Return a shipped config; reading one takes a quarter of a second."""
    return Config.fromfile(file)


@pytest.fixture(scope='module', params=SHIPPED, ids=lambda file: file.stem)
def shipped(request: pytest.FixtureRequest) -> tuple[Path, Config]:
    """Return each shipped config in turn."""
    return request.param, load(request.param)


@pytest.fixture(scope='module', params=OF_COCO, ids=lambda file: file.stem)
def of_coco(request: pytest.FixtureRequest) -> tuple[str, Config]:
    """Return the name of the schedule, and the config, of each that trains on COCO."""
    return request.param.stem.split('_')[-2], load(request.param)


def test_every_row_of_the_papers_tables_is_there_once() -> None:
    found = [
        (*map(int, match.groups()), file.stem)
        for file in SHIPPED
        if (match := re.match(r'# Table (\d) of the paper, row (\d)[:,]', file.read_text()))
    ]
    expected = [
        (table, row, f'{DETECTORS[table]}_{name}_coco')
        for table, names in ROWS.items()
        for row, name in enumerate(names, 1)
    ]
    assert sorted(found) == expected


@pytest.mark.parametrize('file', SHIPPED, ids=lambda file: file.stem)
def test_first_lines_say_what_the_config_is_for(file: Path) -> None:
    lines = file.read_text().splitlines()
    assert re.match('# [A-Z]', lines[0])
    # Then comes what it starts from, before anything else.
    assert next(line for line in lines if not line.startswith('#')).startswith('_base_ = ')


def test_package_is_imported_where_there_is_sn(shipped: tuple[Path, Config]) -> None:
    file, config = shipped
    imports = dict(imports=['sn_openmmlab'], allow_failed_imports=False)
    if "'SN'" in config.pretty_text:
        assert config.custom_imports == imports
    else:
        assert 'sn_' not in file.stem


def test_images_are_those_of_the_pretrained_weights(shipped: tuple[Path, Config]) -> None:
    file, config = shipped
    images = config.model.data_preprocessor
    pretrained = config.model.backbone.init_cfg
    detectron = pretrained is not None and 'detectron/' in pretrained.checkpoint
    assert detectron == bool(re.search('gn-all_.x|gn-backbone|c4_gn_4', file.stem))
    expected = DETECTRON if detectron else TORCHVISION
    assert (images.mean, images.std, images.bgr_to_rgb) == expected
    # Where the stride of a block is; the weights of both parts of a C4 are of one network.
    assert config.model.backbone.style == 'pytorch'
    assert config.model.get('roi_head', {}).get('shared_head', {}).get('style') in (None, 'pytorch')


def test_pretrained_weights_fit_the_norm_and_are_named_once(shipped: tuple[Path, Config]) -> None:
    file, config = shipped
    backbone = config.model.backbone
    if backbone.init_cfg is None:
        assert 'scratch' in file.stem or 'cityscapes' in file.stem or file.parent.name == 'demo'
        assert "Pretrained'" not in str(config.model)
        return
    # What has SN takes the authors' file as it was released, or one with BN.
    kind = 'SNPretrained' if backbone.norm_cfg.type == 'SN' else 'Pretrained'
    assert backbone.init_cfg == dict(type=kind, checkpoint=config.checkpoint)
    if 'c4' in file.stem:
        assert config.model.roi_head.shared_head.init_cfg == backbone.init_cfg
    names = {
        ('BN', 50): 'torchvision://resnet50',
        ('GN', 50): 'open-mmlab://detectron/resnet50_gn',
        ('SN', 50): 'checkpoints/resnet50_sn.pth',
        ('SN', 101): 'checkpoints/resnet101_sn.pth',
    }
    if '8xb1' in file.stem:
        names['SN', 50] = 'checkpoints/resnet50_sn_8x1.pth'
    assert config.checkpoint == names[backbone.norm_cfg.type, backbone.depth]


def test_fine_tuning_on_cityscapes_starts_from_coco() -> None:
    (file,) = CONFIGS.glob('detection/*/*cityscapes.py')
    start = Path(load(file).load_from)
    assert file.with_name(f'{start.parent.name}.py') in OF_COCO
    assert start.name == 'epoch_24.pth'


def test_schedule_on_coco_is_the_papers_in_iterations(of_coco: tuple[str, Config]) -> None:
    name, config = of_coco
    expected, batch, rate = SCHEDULES[name]
    (steps,) = [step for step in config.param_scheduler if step.type == 'MultiStepLR']
    by_epoch = config.train_cfg.type == 'EpochBasedTrainLoop'
    end = config.train_cfg.max_epochs if by_epoch else config.train_cfg.max_iters
    assert (steps.gamma, steps.by_epoch, steps.end) == (0.1, by_epoch, end)
    assert config.auto_scale_lr.base_batch_size == batch
    gpus = 4 if '4xb' in name else 8
    assert config.train_dataloader.batch_size * gpus == batch
    iterations = COCO_IMAGES / batch if by_epoch else 1
    # MMDetection counts the schedules in whole epochs, 12 for 1x.
    tolerance = 0.03 if by_epoch else 0
    assert [step * iterations for step in (*steps.milestones, end)] == pytest.approx(
        expected, rel=tolerance
    )
    if config.model.type in DENSE:
        rate /= 2
    assert config.optim_wrapper.optimizer.lr == rate


def test_training_reads_the_training_images_and_flips_them(of_coco: tuple[str, Config]) -> None:
    _, config = of_coco
    dataset = config.train_dataloader.dataset
    assert dataset.data_root == 'data/coco/'
    assert dataset.ann_file == 'annotations/instances_train2017.json'
    assert dataset.data_prefix == dict(img='train2017/')
    assert [step.prob for step in dataset.pipeline if step.type == 'RandomFlip'] == [0.5]
    assert config.train_dataloader.sampler.get('shuffle', True)
    assert config.val_dataloader.dataset.data_prefix == dict(img='val2017/')


def test_rate_warms_up_as_in_the_toolbox(of_coco: tuple[str, Config]) -> None:
    _, config = of_coco
    warmup, _ = config.param_scheduler
    fcos = config.model.type == 'FCOS'
    assert warmup.type == ('ConstantLR' if fcos else 'LinearLR')
    assert (warmup.begin, warmup.end, warmup.by_epoch) == (0, 500, False)
    # FCOS alone clips its gradients and treats biases apart.
    assert bool(config.optim_wrapper.get('clip_grad')) == fcos
    paramwise = config.optim_wrapper.get('paramwise_cfg', {})
    assert (paramwise.get('bias_lr_mult'), paramwise.get('bias_decay_mult')) == (
        (2, 0) if fcos else (None, None)
    )


def test_every_run_saves_and_evaluates_before_its_end(shipped: tuple[Path, Config]) -> None:
    file, config = shipped
    end = config.train_cfg.get('max_epochs', config.train_cfg.get('max_iters'))
    for interval in (
        config.train_cfg.get('val_interval', 1),
        config.default_hooks.checkpoint.get('interval', 1),
    ):
        assert end % interval == 0, 'the last checkpoint is the one that is used'
    if 'digits' in file.stem or 'bccd' in file.stem:
        assert config.train_dataloader.batch_size == config.auto_scale_lr.base_batch_size == 2


def test_training_by_iterations_does_everything_by_iterations(of_coco: tuple[str, Config]) -> None:
    name, config = of_coco
    by_epoch = not name.endswith('k')
    loader = config.train_dataloader
    assert loader.sampler.type == ('DefaultSampler' if by_epoch else 'InfiniteSampler')
    assert config.log_processor.by_epoch == by_epoch
    assert config.default_hooks.checkpoint.get('by_epoch', True) == by_epoch
    assert 'max_epochs' in config.train_cfg or config.train_cfg.val_interval > 1000


def test_schedule_on_cityscapes_is_the_toolboxes() -> None:
    (file,) = CONFIGS.glob('detection/*/*cityscapes.py')
    config = load(file)
    loader = config.train_dataloader
    # 64 epochs, the rate falls after 56; 8 images at 0.01.
    assert (config.train_cfg.max_epochs, loader.dataset.times) == (8, 8)
    assert [step.milestones for step in config.param_scheduler[1:]] == [[7]]
    assert loader.batch_size * 4 == config.auto_scale_lr.base_batch_size == 8
    assert config.optim_wrapper.optimizer.lr == 0.01


def test_short_side_is_the_papers(of_coco: tuple[str, Config]) -> None:
    name, config = of_coco
    scale = (1000, 600) if '4xb3' in name else (1333, 800)
    for loader in (config.train_dataloader, config.val_dataloader, config.test_dataloader):
        (resize,) = [step for step in loader.dataset.pipeline if step.type == 'Resize']
        assert (resize.scale, resize.keep_ratio) == (scale, True)


def test_optimizer_is_the_papers_and_ends_with_the_schedule(shipped: tuple[Path, Config]) -> None:
    _, config = shipped
    optimizer = config.optim_wrapper.optimizer
    assert (optimizer.type, optimizer.momentum, optimizer.weight_decay) == ('SGD', 0.9, 1e-4)
    end = config.train_cfg.get('max_epochs', config.train_cfg.get('max_iters'))
    (steps,) = [step for step in config.param_scheduler if step.type == 'MultiStepLR']
    assert max(steps.milestones) < end == steps.end


def heads(model: Any) -> Iterator[dict]:
    """Return the configs of all heads that classify."""
    if isinstance(model, dict):
        if 'num_classes' in model:
            yield model
        model = list(model.values())
    if isinstance(model, list | tuple):
        for part in model:
            yield from heads(part)


def test_heads_have_the_classes_of_the_data(shipped: tuple[Path, Config]) -> None:
    _, config = shipped
    kinds = {'CocoDataset': 80, 'CityscapesDataset': 8}
    classes = [head.num_classes for head in heads(config.model)]
    assert classes
    for split in ('train', 'val', 'test'):
        dataset = config[f'{split}_dataloader'].dataset
        dataset = dataset.get('dataset', dataset)
        names = dataset.metainfo.classes if 'metainfo' in dataset else range(kinds[dataset.type])
        assert set(classes) == {len(names)}, split


def test_metrics_are_of_the_data_that_is_loaded(shipped: tuple[Path, Config]) -> None:
    _, config = shipped
    metrics = ['bbox', 'segm'] if 'Mask' in str(config.model) else 'bbox'
    for split in ('val', 'test'):
        dataset = config[f'{split}_dataloader'].dataset
        annotations = Path(dataset.data_root, dataset.ann_file)
        evaluators = config[f'{split}_evaluator']
        coco, *others = evaluators if isinstance(evaluators, list) else [evaluators]
        assert coco.type == 'CocoMetric'
        assert Path(coco.ann_file) == annotations
        assert coco.metric == metrics
        assert all(Path(dataset.data_root) in Path(other.seg_prefix).parents for other in others)


def without_norms(value: object) -> object:
    """Return a config without the settings of the norm."""
    if isinstance(value, dict):
        return {key: without_norms(item) for key, item in value.items() if key != 'norm_cfg'}
    if isinstance(value, list | tuple):
        return [without_norms(item) for item in value]
    return value


@pytest.mark.parametrize('baseline', BASELINES, ids=lambda file: file.stem)
def test_baselines_differ_in_nothing_but_the_norm(baseline: Path) -> None:
    ours = baseline.with_name(re.sub('(?<=[_-])[a-z]+(?=-all)', 'sn', baseline.name))
    configs = [load(file)._cfg_dict.to_dict() for file in (ours, baseline)]
    assert without_norms(configs[0]) == without_norms(configs[1])
    assert configs[0]['norm_cfg'] != configs[1]['norm_cfg']


def plain(table: int, row: int) -> dict:
    """Return a table row's config without its norms, weights, images and kind of box head."""
    name = f'{DETECTORS[table]}_{ROWS[table][row - 1]}_coco.py'
    folder = 'mask_rcnn' if table == 4 else 'faster_rcnn'
    config = without_norms(load(CONFIGS / 'detection' / folder / name)._cfg_dict.to_dict())
    model = config['model']
    for part in (model['backbone'], model['roi_head'].get('shared_head', {})):
        for key in ('init_cfg', 'norm_eval'):
            part.pop(key, None)
    for key in ('type', 'conv_out_channels'):
        model['roi_head']['bbox_head'].pop(key, None)
    for key in ('mean', 'std', 'bgr_to_rgb'):
        model['data_preprocessor'].pop(key)
    config['optim_wrapper'].pop('paramwise_cfg', None)
    of_the_run = ('model', 'optim_wrapper', 'train_dataloader', 'val_dataloader', 'test_dataloader')
    return {key: config[key] for key in (*of_the_run, 'train_cfg', 'param_scheduler')}


@pytest.mark.parametrize('table', ROWS)
def test_rows_of_a_table_differ_in_the_norm_only(table: int) -> None:
    rows = [plain(table, row) for row in range(1, len(ROWS[table]) + 1)]
    # Setting 1 has its upper part fine-tuned, its lower part from scratch.
    upper = 4 if table == 7 else len(rows)
    for part in (rows[:upper], rows[upper:]):
        assert all(row == part[0] for row in part)
