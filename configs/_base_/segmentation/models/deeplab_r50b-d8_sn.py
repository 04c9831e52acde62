# The DeepLab of the paper's App. E with SN everywhere: a ResNet-50 of output stride 8, one 3x3
# convolution to 512 channels and the classes; the same head on stage 3 gives the auxiliary loss.
# The images are those of the authors' segmenter: BGR, not scaled.
_base_ = '../../switch_norm.py'

norm_cfg = _base_.norm_cfg
checkpoint = 'checkpoints/resnet50_sn.pth'
head = dict(
    type='FCNHead',
    channels=512,
    num_convs=1,
    concat_input=False,
    dropout_ratio=0,
    num_classes=19,
    norm_cfg=norm_cfg,
    align_corners=False,
)
model = dict(
    type='EncoderDecoder',
    data_preprocessor=dict(
        type='SegDataPreProcessor',
        mean=[102.9801, 115.9465, 122.7717],
        std=[1.0, 1.0, 1.0],
        bgr_to_rgb=False,
        pad_val=0,
        seg_pad_val=255,
    ),
    backbone=dict(
        type='ResNet',
        depth=50,
        num_stages=4,
        out_indices=(0, 1, 2, 3),
        strides=(1, 2, 1, 1),
        dilations=(1, 1, 2, 4),
        contract_dilation=True,
        style='pytorch',
        norm_cfg=norm_cfg,
        norm_eval=False,
        init_cfg=dict(type='SNPretrained', checkpoint=checkpoint),
    ),
    decode_head=dict(
        **head,
        in_channels=2048,
        in_index=3,
        loss_decode=dict(type='CrossEntropyLoss', use_sigmoid=False, loss_weight=1.0),
    ),
    auxiliary_head=dict(
        **head,
        in_channels=1024,
        in_index=2,
        loss_decode=dict(type='CrossEntropyLoss', use_sigmoid=False, loss_weight=0.4),
    ),
    train_cfg=dict(),
    test_cfg=dict(mode='whole'),
)
del head
