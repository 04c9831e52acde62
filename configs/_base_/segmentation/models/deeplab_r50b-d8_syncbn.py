# The rival with BN over all GPUs, from torchvision's ImageNet weights and on their images.
_base_ = './deeplab_r50b-d8_sn.py'

# MMEngine takes `_delete_` out of a dict that it has read: each part gets its own.
norm_cfg = dict(_delete_=True, type='SyncBN')
checkpoint = 'torchvision://resnet50'
model = dict(
    data_preprocessor=dict(
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
    ),
    backbone=dict(norm_cfg=dict(norm_cfg), init_cfg=dict(type='Pretrained', checkpoint=checkpoint)),
    decode_head=dict(norm_cfg=dict(norm_cfg)),
    auxiliary_head=dict(norm_cfg=dict(norm_cfg)),
)
