# Real photographs: 205 microscope images of blood cells (BCCD, COCO format, in data/bccd), trained
# from scratch at two images per batch on a CPU. Two baselines have GN and BN.
_base_ = '../../_base_/faster-rcnn_r18_fpn_sn-all_scratch.py'

data_root = 'data/bccd/'
metainfo = dict(classes=('RBC', 'WBC', 'Platelets'))
model = dict(roi_head=dict(bbox_head=dict(num_classes=3)))

load = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', with_bbox=True)]
resize = dict(type='Resize', scale=(320, 240), keep_ratio=True)
train_pipeline = [
    *load,
    resize,
    dict(
        type='RandomFlip', prob=[0.25, 0.25, 0.25], direction=['horizontal', 'vertical', 'diagonal']
    ),
    dict(type='PackDetInputs'),
]
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
    batch_size=2,
    dataset=dict(
        data_root=data_root,
        metainfo=metainfo,
        ann_file='annotations/train.json',
        data_prefix=dict(img='images/'),
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    dataset=dict(
        data_root=data_root,
        metainfo=metainfo,
        ann_file='annotations/val.json',
        data_prefix=dict(img='images/'),
        pipeline=test_pipeline,
    ),
)
test_dataloader = dict(
    dataset=dict(
        data_root=data_root,
        metainfo=metainfo,
        ann_file='annotations/test.json',
        data_prefix=dict(img='images/'),
        pipeline=test_pipeline,
    )
)
val_evaluator = dict(ann_file=data_root + 'annotations/val.json')
test_evaluator = dict(ann_file=data_root + 'annotations/test.json')

max_epochs = 8
train_cfg = dict(max_epochs=max_epochs, val_interval=2)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=100),
    dict(type='MultiStepLR', by_epoch=True, milestones=[6, 7], gamma=0.1, end=max_epochs),
]
randomness = dict(seed=0)
