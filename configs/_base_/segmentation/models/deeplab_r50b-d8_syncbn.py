# The baseline with BN over all GPUs, from torchvision's ImageNet weights and with their
# preprocessing.
_base_ = './deeplab_r50b-d8_sn.py'

# MMEngine removes `_delete_` from a dict once it has read it, so each part has its own.
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
