# Table 7 of the paper, row 1: Faster R-CNN, ResNet-50-C4 (App. D, setting 1: 4 GPUs with 3 images
# each, short side 600). BN† in the backbone and the conv5 head (frozen).
_base_ = '../../_base_/faster-rcnn_r50_c4.py'

resize = dict(type='Resize', scale=(1000, 600), keep_ratio=True)
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True),
    resize,
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackDetInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    resize,
    dict(type='LoadAnnotations', with_bbox=True),
    dict(
        type='PackDetInputs',
        meta_keys=('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor'),
    ),
]
train_dataloader = dict(
    batch_size=3,
    sampler=dict(type='InfiniteSampler'),
    dataset=dict(pipeline=train_pipeline),
)
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader

# 80k iterations at 0.01, another 40k at 0.001.
train_cfg = dict(_delete_=True, type='IterBasedTrainLoop', max_iters=120000, val_interval=10000)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.001, by_epoch=False, begin=0, end=500),
    dict(type='MultiStepLR', by_epoch=False, milestones=[80000], gamma=0.1, end=120000),
]
optim_wrapper = dict(optimizer=dict(lr=0.01))
auto_scale_lr = dict(base_batch_size=12)
default_hooks = dict(checkpoint=dict(by_epoch=False, interval=10000))
log_processor = dict(by_epoch=False)
