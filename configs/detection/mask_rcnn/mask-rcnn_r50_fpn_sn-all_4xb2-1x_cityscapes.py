# Mask R-CNN with SN in the backbone, the FPN and the heads, fine-tuned on Cityscapes from its COCO
# weights, with the toolbox's schedule for Cityscapes.
_base_ = [
    'mmdet::cityscapes/mask-rcnn_r50_fpn_1x_cityscapes.py',
    '../../_base_/switch_norm.py',
]
# The final checkpoint of mask-rcnn_r50_fpn_sn-all_2x_coco.py.
load_from = 'work_dirs/mask-rcnn_r50_fpn_sn-all_2x_coco/epoch_24.pth'

norm_cfg = _base_.norm_cfg
model = dict(
    backbone=dict(norm_cfg=norm_cfg, norm_eval=False),
    neck=dict(norm_cfg=norm_cfg),
    roi_head=dict(
        bbox_head=dict(type='Shared4Conv1FCBBoxHead', conv_out_channels=256, norm_cfg=norm_cfg),
        mask_head=dict(norm_cfg=norm_cfg),
    ),
)
# The base has 8 GPUs with 1 image each. SN prefers 2 images on 4 GPUs, the same batch of 8.
train_dataloader = dict(batch_size=2)
auto_scale_lr = dict(base_batch_size=8)
# App. D: no weight decay on γ and β; as in the authors' settings, none on λ either.
optim_wrapper = dict(paramwise_cfg=dict(norm_decay_mult=0.0))
