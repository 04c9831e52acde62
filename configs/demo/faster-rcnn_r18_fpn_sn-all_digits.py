# The quickstart: Faster R-CNN with SN everywhere, from scratch, two images per batch, on the
# synthetic digits of studies/make_demo_data.py, on a CPU.
_base_ = '../_base_/faster-rcnn_r18_fpn_sn-all_scratch.py'

data_root = 'data/demo/'
metainfo = dict(classes=tuple('0123456789'))
# Half of ResNet-18's channels: on a CPU, more steps help more than more width.
model = dict(
    backbone=dict(base_channels=32),
    neck=dict(in_channels=[32, 64, 128, 256]),
    roi_head=dict(bbox_head=dict(num_classes=10)),
)

load = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', with_bbox=True)]
resize = dict(type='Resize', scale=(256, 192), keep_ratio=True)
train_pipeline = [*load, resize, dict(type='PackDetInputs')]
test_pipeline = [
    load[0],
    resize,
    load[1],
    dict(
        type='PackDetInputs',
        meta_keys=('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor'),
    ),
]

train_dataloader = dict(
    dataset=dict(
        data_root=data_root,
        metainfo=metainfo,
        ann_file='annotations/instances_train.json',
        data_prefix=dict(img='images/train/'),
        pipeline=train_pipeline,
    )
)
val_dataloader = dict(
    dataset=dict(
        data_root=data_root,
        metainfo=metainfo,
        ann_file='annotations/instances_val.json',
        data_prefix=dict(img='images/val/'),
        pipeline=test_pipeline,
    )
)
test_dataloader = val_dataloader
val_evaluator = dict(ann_file=data_root + 'annotations/instances_val.json')
test_evaluator = val_evaluator

max_epochs = 4
train_cfg = dict(max_epochs=max_epochs)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=100),
    dict(type='MultiStepLR', by_epoch=True, milestones=[3], gamma=0.1, end=max_epochs),
]
optim_wrapper = dict(optimizer=dict(lr=0.02))
randomness = dict(seed=0)
