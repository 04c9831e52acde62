# FCOS with SN in the backbone, the FPN and the head, fine-tuned from ImageNet SN weights, with the
# toolbox's 1x schedule. The base has Caffe's ResNet and preprocessing; here both are
# those of the SN weights.
_base_ = [
    'mmdet::fcos/fcos_r50-caffe_fpn_gn-head_1x_coco.py',
    '../../_base_/switch_norm.py',
]
# A ResNet-50 with SN in MMDetection's layout.
checkpoint = 'checkpoints/resnet50_sn.pth'

# The base freezes its norms.
norm_cfg = dict(_base_.norm_cfg, requires_grad=True)
# All FPN levels share the head's layers, and no running average fits them all: no bn there.
head_norm_cfg = dict(_base_.norm_cfg, scopes=('in', 'ln'))
model = dict(
    data_preprocessor=dict(
        mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375], bgr_to_rgb=True
    ),
    backbone=dict(
        style='pytorch',
        norm_cfg=norm_cfg,
        norm_eval=False,
        init_cfg=dict(type='SNPretrained', checkpoint=checkpoint),
    ),
    neck=dict(norm_cfg=norm_cfg),
    bbox_head=dict(norm_cfg=head_norm_cfg),
)
# App. D: no weight decay on γ and β; as in the authors' settings, none on λ either.
optim_wrapper = dict(paramwise_cfg=dict(norm_decay_mult=0.0))
