# Table 7 of the paper, row 2: Faster R-CNN, ResNet-50-C4 (App. D, setting 1: 4 GPUs with 3 images
# each, short side 600). BN in the backbone and the conv5 head, trained with its batch statistics,
# fine-tuned from ImageNet BN weights.
_base_ = './faster-rcnn_r50_c4_bn-frozen_4xb3-120k_coco.py'

# The base freezes its norms.
norm_cfg = dict(type='BN', requires_grad=True)
part = dict(norm_cfg=norm_cfg, norm_eval=False)
model = dict(backbone=part, roi_head=dict(shared_head=part))
# App. D: no weight decay on γ and β.
optim_wrapper = dict(paramwise_cfg=dict(norm_decay_mult=0.0))
