# The quickstart of segmentation: the paper's DeepLab with SN everywhere, from scratch, two images
# per batch, on the synthetic digits of studies/make_demo_data.py, on a CPU.
_base_ = [
    '../_base_/segmentation/models/deeplab_r50b-d8_sn.py',
    '../_base_/segmentation/schedules/schedule_80k.py',
    '../_base_/segmentation/runtime.py',
]

# No weights of the authors are loaded, so the variance is that of the paper's Eq. 2.
norm_cfg = dict(correction=0)
# A quarter of ResNet-18's channels, half in the stem: on a CPU, more steps help more than
# more width. The head sees 7x7 positions, a whole digit. Background weighs less in the loss, since
# it covers twelve times as many pixels as all digits together.
classes = ('background', *'0123456789')
loss = dict(class_weight=[0.1] + [1.0] * 10)
model = dict(
    data_preprocessor=dict(size=(192, 256)),
    backbone=dict(
        depth=18,
        norm_cfg=norm_cfg,
        stem_channels=32,
        base_channels=16,
        zero_init_residual=False,
        init_cfg=None,
    ),
    decode_head=dict(
        norm_cfg=norm_cfg,
        kernel_size=7,
        in_channels=128,
        channels=96,
        num_classes=len(classes),
        loss_decode=loss,
    ),
    auxiliary_head=dict(
        norm_cfg=norm_cfg,
        in_channels=64,
        channels=64,
        num_classes=len(classes),
        loss_decode=loss,
    ),
)

load = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')]
pack = dict(type='PackSegInputs')
test_pipeline = [*load, pack]  # as in training
img_ratios = [0.75, 1.0, 1.25]
tta_pipeline = [
    load[0],
    dict(
        type='TestTimeAug',
        transforms=[
            [dict(type='Resize', scale_factor=ratio, keep_ratio=True) for ratio in img_ratios],
            [load[1]],
            [pack],
        ],
    ),
]
digits = dict(
    type='BaseSegDataset',
    data_root='data/demo/',
    img_suffix='.png',
    metainfo=dict(
        classes=classes,
        palette=[
            [0, 0, 0],
            [230, 25, 75],
            [60, 180, 75],
            [255, 225, 25],
            [0, 130, 200],
            [245, 130, 48],
            [145, 30, 180],
            [70, 240, 240],
            [240, 50, 230],
            [170, 110, 40],
            [128, 128, 0],
        ],
    ),
    pipeline=test_pipeline,
)
train_dataloader = dict(
    batch_size=2,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(digits, data_prefix=dict(img_path='images/train', seg_map_path='labels/train')),
)
val_dataloader = dict(
    batch_size=1,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(digits, data_prefix=dict(img_path='images/val', seg_map_path='labels/val')),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator

max_iters = 2400
interval = 600
optim_wrapper = dict(
    optimizer=dict(lr=0.1, weight_decay=1e-4),
    clip_grad=dict(max_norm=35),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=100),
    dict(type='PolyLR', power=0.9, eta_min=0.0, begin=100, end=max_iters, by_epoch=False),
]
train_cfg = dict(max_iters=max_iters, val_interval=interval)
default_hooks = dict(
    logger=dict(interval=20),
    checkpoint=dict(interval=interval, max_keep_ckpts=1),
)
auto_scale_lr = dict(base_batch_size=2)
randomness = dict(seed=0)
