"""A small segmenter with BatchNorm in the backbone, as in a config of MMSegmentation."""

FCN = dict(
    type='EncoderDecoder',
    backbone=dict(type='ResNet', depth=18, norm_cfg=dict(type='BN')),
    decode_head=dict(
        type='FCNHead',
        in_channels=512,
        in_index=3,
        channels=8,
        num_convs=1,
        concat_input=False,
        num_classes=2,
        norm_cfg=dict(type='GN', num_groups=4),
    ),
)
