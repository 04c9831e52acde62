# The rival with GN of 32 groups, from Detectron's ImageNet weights and on the images that those
# were trained on: BGR with Detectron's means, not scaled.
_base_ = './deeplab_r50b-d8_sn.py'

# MMEngine takes `_delete_` out of a dict that it has read: each part gets its own.
norm_cfg = dict(_delete_=True, type='GN', num_groups=32)
checkpoint = 'open-mmlab://detectron/resnet50_gn'
model = dict(
    data_preprocessor=dict(mean=[103.53, 116.28, 123.675]),
    backbone=dict(norm_cfg=dict(norm_cfg), init_cfg=dict(type='Pretrained', checkpoint=checkpoint)),
    decode_head=dict(norm_cfg=dict(norm_cfg)),
    auxiliary_head=dict(norm_cfg=dict(norm_cfg)),
)
