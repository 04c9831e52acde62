# MMSegmentation's DeepLabV3 with SN everywhere, on the paper's ResNet-50 with its 7x7 stem and
# torchvision's preprocessing.
_base_ = './deeplab_r50b-d8_sn.py'

norm_cfg = _base_.norm_cfg
model = dict(
    data_preprocessor=dict(
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
    ),
    decode_head=dict(
        _delete_=True,
        type='ASPPHead',
        in_channels=2048,
        in_index=3,
        channels=512,
        dilations=(1, 12, 24, 36),
        dropout_ratio=0.1,
        num_classes=19,
        norm_cfg=norm_cfg,
        align_corners=False,
        loss_decode=dict(type='CrossEntropyLoss', use_sigmoid=False, loss_weight=1.0),
    ),
    auxiliary_head=dict(channels=256, dropout_ratio=0.1),
)
