# Table 7 of the paper, row 4: Faster R-CNN, ResNet-50-C4 (App. D, setting 1: 4 GPUs with 3 images
# each, short side 600). SN in the backbone and the conv5 head, fine-tuned from ImageNet SN weights.
_base_ = './faster-rcnn_r50_c4_bn-frozen_4xb3-120k_coco.py'
# A ResNet-50 with SN in MMDetection's layout.
checkpoint = 'checkpoints/resnet50_sn.pth'

custom_imports = dict(imports=['sn_openmmlab'], allow_failed_imports=False)
# The base freezes its norms. The variance of an instance divides by HW - 1, as in the training of
# the weights.
norm_cfg = dict(type='SN', correction=1, requires_grad=True)
part = dict(
    norm_cfg=norm_cfg, norm_eval=False, init_cfg=dict(type='SNPretrained', checkpoint=checkpoint)
)
model = dict(backbone=part, roi_head=dict(shared_head=part))
# App. D: no weight decay on γ and β; as in the authors' settings, none on λ either.
optim_wrapper = dict(paramwise_cfg=dict(norm_decay_mult=0.0))
