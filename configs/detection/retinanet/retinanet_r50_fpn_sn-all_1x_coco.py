# RetinaNet with SN in the backbone, the FPN and the head, fine-tuned from ImageNet SN weights, with
# the toolbox's 1x schedule.
_base_ = [
    'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py',
    '../../_base_/switch_norm.py',
]
# A ResNet-50 with SN in MMDetection's layout.
checkpoint = 'checkpoints/resnet50_sn.pth'

norm_cfg = _base_.norm_cfg
# All FPN levels share the head's layers, and no running average fits them all: no bn there.
head_norm_cfg = dict(_base_.norm_cfg, scopes=('in', 'ln'))
model = dict(
    backbone=dict(
        norm_cfg=norm_cfg,
        norm_eval=False,
        init_cfg=dict(type='SNPretrained', checkpoint=checkpoint),
    ),
    neck=dict(norm_cfg=norm_cfg),
    bbox_head=dict(norm_cfg=head_norm_cfg),
)
# App. D: no weight decay on γ and β; as in the authors' settings, none on λ either.
optim_wrapper = dict(paramwise_cfg=dict(norm_decay_mult=0.0))
