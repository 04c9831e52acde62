# Table 3 of the paper, row 5: Faster R-CNN, ResNet-50 and FPN, 1x schedule (App. D, setting 2). SN
# in the backbone, the FPN and the 4conv1fc box head, fine-tuned from ImageNet SN weights.
_base_ = [
    'mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py',
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
        bbox_head=dict(type='Shared4Conv1FCBBoxHead', conv_out_channels=256, norm_cfg=norm_cfg)
    ),
)
# App. D: no weight decay on γ and β; as in the authors' settings, none on λ either.
optim_wrapper = dict(paramwise_cfg=dict(norm_decay_mult=0.0))
