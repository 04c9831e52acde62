# The baseline: BN wherever the config with SN has SN, everything else the same.
_base_ = './faster-rcnn_r18_fpn_sn-all_scratch_bccd.py'

norm_cfg = dict(type='BN')
model = dict(
    backbone=dict(norm_cfg=norm_cfg),
    neck=dict(norm_cfg=norm_cfg),
    roi_head=dict(bbox_head=dict(norm_cfg=norm_cfg)),
)
