# The baseline: GN wherever the config with SN has SN, everything else the same. With 16 groups, the
# narrowest layers (32 channels) have two channels a group, as in a ResNet-50 with 32 groups. With
# 32, GN would be instance normalization there.
_base_ = './faster-rcnn_r18_fpn_sn-all_digits.py'

norm_cfg = dict(type='GN', num_groups=16)
model = dict(
    backbone=dict(norm_cfg=norm_cfg),
    neck=dict(norm_cfg=norm_cfg),
    roi_head=dict(bbox_head=dict(norm_cfg=norm_cfg)),
)
