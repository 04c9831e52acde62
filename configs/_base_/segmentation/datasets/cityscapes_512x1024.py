# Cityscapes as MMSegmentation trains on it: crops of 512x1024, 2 images per GPU.
data_root = 'data/cityscapes/'
crop_size = (512, 1024)
scale = (2048, 1024)

load = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')]
pack = dict(type='PackSegInputs')
train_pipeline = [
    *load,
    dict(type='RandomResize', scale=scale, ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=crop_size, cat_max_ratio=0.75),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PhotoMetricDistortion'),
    pack,
]
test_pipeline = [load[0], dict(type='Resize', scale=scale, keep_ratio=True), load[1], pack]
img_ratios = [0.5, 0.75, 1.0, 1.25, 1.5, 1.75]
tta_pipeline = [
    load[0],
    dict(
        type='TestTimeAug',
        transforms=[
            [dict(type='Resize', scale_factor=ratio, keep_ratio=True) for ratio in img_ratios],
            [dict(type='RandomFlip', prob=prob) for prob in (0.0, 1.0)],
            [load[1]],
            [pack],
        ],
    ),
]

train_dataloader = dict(
    batch_size=2,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(
        type='CityscapesDataset',
        data_root=data_root,
        data_prefix=dict(img_path='leftImg8bit/train', seg_map_path='gtFine/train'),
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    batch_size=1,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='CityscapesDataset',
        data_root=data_root,
        data_prefix=dict(img_path='leftImg8bit/val', seg_map_path='gtFine/val'),
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator
