# The rival of the config beside it: GN wherever that one has SN, all else the same. 16 groups give
# the narrowest layers, of 32 channels, two channels a group, as 32 groups do in a ResNet-50; 32
# would make GN instance normalization there.
_base_ = './faster-rcnn_r18_fpn_sn-all_digits.py'

norm_cfg = dict(type='GN', num_groups=16)
model = dict(
    backbone=dict(norm_cfg=norm_cfg),
    neck=dict(norm_cfg=norm_cfg),
    roi_head=dict(bbox_head=dict(norm_cfg=norm_cfg)),
)
