"""The quickstarts, resumed by tools/train.py, go on as if they had not been stopped."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.resumed import assert_same_training

# Each quickstart at a small size, with a random augmentation where it has none.
COMMON = """
custom_hooks = [dict(type='EMAHook', momentum=0.1)]
workers = {workers}
loader = dict(num_workers=workers, persistent_workers=workers > 0)
"""
DETECTOR = """
_base_ = '{repo}/configs/demo/faster-rcnn_r18_fpn_sn-all_digits.py'

data_root = '{data}/'
metainfo = dict(classes=('bright', 'dark'))
model = dict(
    backbone=dict(stem_channels=8, base_channels=8),
    neck=dict(in_channels=[8, 16, 32, 64], out_channels=16),
    rpn_head=dict(in_channels=16, feat_channels=16),
    roi_head=dict(
        bbox_roi_extractor=dict(out_channels=16),
        bbox_head=dict(in_channels=16, conv_out_channels=16, fc_out_channels=32, num_classes=2),
    ),
)
resize = dict(type='RandomResize', scale=(96, 64), ratio_range=(0.8, 1.2), keep_ratio=True)
flip = dict(type='RandomFlip', prob=0.5)
train_pipeline = [*_base_.load, resize, flip, dict(type='PackDetInputs')]
train_data = dict(
    data_root=data_root,
    metainfo=metainfo,
    ann_file='train.json',
    data_prefix=dict(img='images/'),
    pipeline=train_pipeline,
)
val_data = dict(train_data, ann_file='val.json', pipeline=_base_.test_pipeline)
train_dataloader = dict(loader, dataset=train_data)
val_dataloader = dict(loader, dataset=val_data)
test_dataloader = val_dataloader
val_evaluator = dict(ann_file=data_root + 'val.json')
test_evaluator = val_evaluator
"""
SEGMENTER = """
_base_ = '{repo}/configs/demo/deeplab_r18b-d8_sn_digits.py'

classes, palette = ('bright', 'dark'), [[255, 255, 0], [0, 0, 128]]
loss = dict(class_weight=[1.0, 1.0])
head = dict(num_classes=2, loss_decode=loss)
model = dict(
    data_preprocessor=dict(size=(64, 96)),
    backbone=dict(stem_channels=8, base_channels=8),
    decode_head=dict(head, kernel_size=3, in_channels=64, channels=16),
    auxiliary_head=dict(head, in_channels=32, channels=16),
)
pipeline = [*_base_.load, dict(type='RandomFlip', prob=0.5), dict(type='PackSegInputs')]
data = dict(
    data_root='{data}',
    img_suffix='.jpg',
    metainfo=dict(_delete_=True, classes=classes, palette=palette),
)
train = dict(img_path='train', seg_map_path='labels/train')
val = dict(img_path='val', seg_map_path='labels/val')
train_dataloader = dict(loader, dataset=dict(data, data_prefix=train, pipeline=pipeline))
val_dataloader = dict(loader, dataset=dict(data, data_prefix=val))
test_dataloader = val_dataloader
"""
CLASSIFIER = """
_base_ = '{repo}/configs/demo/resnet18_sn_digits.py'

model = dict(
    backbone=dict(stem_channels=8, base_channels=8), head=dict(num_classes=2, in_channels=64)
)
data = dict(data_root='{data}')
train_dataloader = dict(loader, batch_size=2, dataset=data)
val_dataloader = dict(loader, batch_size=2, dataset=dict(data, data_prefix='val'))
test_dataloader = val_dataloader
"""
QUICKSTARTS = {
    'detector': (DETECTOR, 'tiny_coco'),
    'segmenter': (SEGMENTER, 'tiny_maps'),
    'classifier': (CLASSIFIER, 'tiny_classes'),
}
CHECKPOINTS = """
kept = dict(type='CheckpointHook', interval={interval}, by_epoch={by_epoch}, _delete_=True)
default_hooks = dict(checkpoint=kept, logger=dict(interval=1))
del kept
"""
# Two data loaders of four steps an epoch; two steps with the label maps.
EPOCHS = """
sampler = dict(_delete_=True, type='DefaultSampler', shuffle=True)
train_cfg = dict(_delete_=True, by_epoch=True, max_epochs={number}, val_interval=1)
log_processor = dict(by_epoch=True)
train_dataloader['sampler'] = sampler
"""
ITERATIONS = """
sampler = dict(_delete_=True, type='InfiniteSampler', shuffle=True)
train_cfg = dict(_delete_=True, by_epoch=False, max_iters={number}, val_interval=4)
log_processor = dict(by_epoch=False)
train_dataloader['sampler'] = sampler
"""
AMP = """
imports = ['sn_openmmlab', 'tests.cpu_amp']
custom_imports = dict(imports=imports, allow_failed_imports=False)
optim_wrapper = dict(type='AmpOptimWrapper', dtype='bfloat16', loss_scale='dynamic')
"""
FULL = pytest.mark.slow


@pytest.fixture
def resume(
    repo: Path,
    request: pytest.FixtureRequest,
    write_config: Callable,
    run_tool: Callable,
    logged: Callable,
    tmp_path: Path,
) -> Callable[..., None]:
    """Return a function that trains at once, and with a stop, and compares the two."""

    def run(name: str, parts: str, stop: str, workers: int = 0, **settings: object) -> None:
        text, data = QUICKSTARTS[name]
        base, _, rest = text.partition('\n\n')
        text = f'{base}\n{COMMON}\n{rest}\n{CHECKPOINTS}\n{parts}'
        data = request.getfixturevalue(data)
        config = write_config(text.format(repo=repo, data=data, workers=workers, **settings))
        for folder, options in (
            ('whole', []),
            ('rest', ['--resume', tmp_path / f'whole/{stop}.pth']),
        ):
            tool = [repo / 'tools/train.py', config, '--work-dir', tmp_path / folder]
            run_tool(*tool, *options)
        files = sorted((tmp_path / 'rest').glob('*.pth'))
        assert files
        for file in files:
            assert_same_training(file, tmp_path / 'whole' / file.name, metrics=False)
        whole, rest = (logged(tmp_path / folder)[0] for folder in ('whole', 'rest'))
        assert 0 < len(rest) < len(whole)
        assert rest == whole[-len(rest) :]

    return run


@pytest.mark.parametrize(
    ('name', 'parts', 'workers'),
    [
        ('detector', AMP, 2),
        pytest.param('detector', '', 0, marks=FULL),
        pytest.param('segmenter', AMP, 2, marks=FULL),
        pytest.param('segmenter', '', 0, marks=FULL),
        pytest.param('classifier', AMP, 0, marks=FULL),
    ],
)
def test_within_an_epoch(name: str, parts: str, workers: int, resume: Callable) -> None:
    resume(name, EPOCHS + parts, 'iter_3', workers, interval=3, by_epoch=False, number=2)


@pytest.mark.parametrize(
    ('name', 'parts', 'workers'),
    [
        ('classifier', '', 2),
        pytest.param('classifier', AMP, 0, marks=FULL),
        pytest.param('detector', '', 0, marks=FULL),
        pytest.param('segmenter', '', 2, marks=FULL),
    ],
)
def test_between_epochs(name: str, parts: str, workers: int, resume: Callable) -> None:
    resume(name, EPOCHS + parts, 'epoch_1', workers, interval=1, by_epoch=True, number=2)


@pytest.mark.parametrize(
    ('name', 'parts', 'workers'),
    [
        ('segmenter', AMP, 2),
        pytest.param('segmenter', '', 0, marks=FULL),
        pytest.param('detector', AMP, 2, marks=FULL),
        pytest.param('detector', '', 0, marks=FULL),
        pytest.param('classifier', AMP, 2, marks=FULL),
    ],
)
def test_by_iterations(name: str, parts: str, workers: int, resume: Callable) -> None:
    resume(name, ITERATIONS + parts, 'iter_3', workers, interval=3, by_epoch=False, number=6)
