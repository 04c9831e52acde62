# Table 4 of the paper, row 6: Mask R-CNN, ResNet-50 and FPN, 2x schedule (App. D, setting 3). SN in
# the backbone, the FPN, the 4conv1fc box head and the mask head, fine-tuned from ImageNet SN
# weights.
_base_ = [
    'mmdet::mask_rcnn/mask-rcnn_r50_fpn_2x_coco.py',
    '../../_base_/switch_norm.py',
]
# A ResNet-50 with SN in MMDetection's layout.
checkpoint = 'checkpoints/resnet50_sn.pth'

norm_cfg = _base_.norm_cfg
model = dict(
    backbone=dict(
        norm_cfg=norm_cfg,
        norm_eval=False,
        init_cfg=dict(type='SNPretrained', checkpoint=checkpoint),
    ),
    neck=dict(norm_cfg=norm_cfg),
    roi_head=dict(
        bbox_head=dict(type='Shared4Conv1FCBBoxHead', conv_out_channels=256, norm_cfg=norm_cfg),
        mask_head=dict(norm_cfg=norm_cfg),
    ),
)
# App. D: no weight decay on γ and β; as in the authors' settings, none on λ either.
optim_wrapper = dict(paramwise_cfg=dict(norm_decay_mult=0.0))
