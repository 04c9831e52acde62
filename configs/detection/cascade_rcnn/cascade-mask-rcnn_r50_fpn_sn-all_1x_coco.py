# Cascade Mask R-CNN with SN in the backbone, the FPN, the three 4conv1fc box heads and the mask
# heads, fine-tuned from ImageNet SN weights, with the toolbox's 1x schedule.
_base_ = [
    'mmdet::cascade_rcnn/cascade-mask-rcnn_r50_fpn_1x_coco.py',
    '../../_base_/switch_norm.py',
]
# A ResNet-50 with SN in MMDetection's layout.
checkpoint = 'checkpoints/resnet50_sn.pth'

norm_cfg = _base_.norm_cfg
box_head = dict(type='Shared4Conv1FCBBoxHead', conv_out_channels=256, norm_cfg=norm_cfg)
model = dict(
    backbone=dict(
        norm_cfg=norm_cfg,
        norm_eval=False,
        init_cfg=dict(type='SNPretrained', checkpoint=checkpoint),
    ),
    neck=dict(norm_cfg=norm_cfg),
    roi_head=dict(
        bbox_head=[dict(head, **box_head) for head in _base_.model.roi_head.bbox_head],
        mask_head=dict(norm_cfg=norm_cfg),
    ),
)
# App. D: no weight decay on γ and β; as in the authors' settings, none on λ either.
optim_wrapper = dict(paramwise_cfg=dict(norm_decay_mult=0.0))
