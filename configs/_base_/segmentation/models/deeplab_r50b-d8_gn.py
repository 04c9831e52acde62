# The baseline with GN of 32 groups, from Detectron's ImageNet weights and with their
# preprocessing: BGR with Detectron's means, not scaled.
_base_ = './deeplab_r50b-d8_sn.py'

# MMEngine removes `_delete_` from a dict once it has read it, so each part has its own.
norm_cfg = dict(_delete_=True, type='GN', num_groups=32)
checkpoint = 'open-mmlab://detectron/resnet50_gn'
model = dict(
    data_preprocessor=dict(mean=[103.53, 116.28, 123.675]),
    backbone=dict(norm_cfg=dict(norm_cfg), init_cfg=dict(type='Pretrained', checkpoint=checkpoint)),
    decode_head=dict(norm_cfg=dict(norm_cfg)),
    auxiliary_head=dict(norm_cfg=dict(norm_cfg)),
)
