# Table 4 of the paper, row 3: Mask R-CNN, ResNet-50 and FPN, 2x schedule (App. D, setting 3). BN†
# in the backbone (frozen), SN in the FPN, the 4conv1fc box head and the mask head.
_base_ = [
    './mask-rcnn_r50_fpn_bn-frozen_2x_coco.py',
    '../../_base_/switch_norm.py',
]

norm_cfg = _base_.norm_cfg
model = dict(
    neck=dict(norm_cfg=norm_cfg),
    roi_head=dict(
        bbox_head=dict(type='Shared4Conv1FCBBoxHead', conv_out_channels=256, norm_cfg=norm_cfg),
        mask_head=dict(norm_cfg=norm_cfg),
    ),
)
# App. D: no weight decay on γ and β; as in the authors' settings, none on λ either.
optim_wrapper = dict(paramwise_cfg=dict(norm_decay_mult=0.0))
