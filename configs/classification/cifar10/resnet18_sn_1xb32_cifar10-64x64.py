# The backbone of the quickstart's detector, trained to classify CIFAR-10 enlarged to 64x64 pixels,
# so that the detector can start from its weights. Images are normalized as in the detector.
_base_ = '../../_base_/classification/cifar10.py'

custom_imports = dict(imports=['sn_openmmlab'], allow_failed_imports=False)
model = dict(
    type='ImageClassifier',
    backbone=dict(
        type='ResNet', depth=18, stem_channels=32, base_channels=32, norm_cfg=dict(type='SN')
    ),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(
        type='LinearClsHead', num_classes=10, in_channels=256, loss=dict(type='CrossEntropyLoss')
    ),
)
data_preprocessor = dict(mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375])
enlarge = dict(type='Resize', scale=64)
test_pipeline = [_base_.load, enlarge, _base_.pack]
train_dataloader = dict(
    batch_size=32,
    dataset=dict(
        indices=range(0, 50000, 5),
        pipeline=[_base_.load, *_base_.augment, enlarge, _base_.pack],
    ),
)
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader

auto_scale_lr = dict(base_batch_size=32)
