# A small ResNet with SN on CIFAR-10, 16 images per batch: the first two stages of ResNet-18, of a
# quarter of its width, with the small stem for small images. It has nine convolutions.
_base_ = '../../_base_/classification/cifar10.py'

custom_imports = dict(imports=['sn_openmmlab'], allow_failed_imports=False)
model = dict(
    type='ImageClassifier',
    backbone=dict(
        type='ResNet_CIFAR',
        depth=18,
        num_stages=2,
        strides=(2, 2),
        dilations=(1, 1),
        out_indices=(1,),
        stem_channels=16,
        base_channels=16,
        norm_cfg=dict(type='SN'),
    ),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(
        type='LinearClsHead', num_classes=10, in_channels=32, loss=dict(type='CrossEntropyLoss')
    ),
)
