# Table 7 of the paper, row 3: Faster R-CNN, ResNet-50-C4 (App. D, setting 1: 4 GPUs with 3 images
# each, short side 600). GN in the backbone and the conv5 head, fine-tuned from ImageNet GN weights.
_base_ = './faster-rcnn_r50_c4_bn-frozen_4xb3-120k_coco.py'
# A ResNet-50 with GN and its preprocessing: BGR, not scaled.
checkpoint = 'open-mmlab://detectron/resnet50_gn'
images = dict(mean=[103.530, 116.280, 123.675], std=[1.0, 1.0, 1.0], bgr_to_rgb=False)

# The base freezes its norms.
norm_cfg = dict(type='GN', num_groups=32, requires_grad=True)
part = dict(norm_cfg=norm_cfg, norm_eval=False, init_cfg=dict(checkpoint=checkpoint))
model = dict(data_preprocessor=images, backbone=part, roi_head=dict(shared_head=part))
# App. D: no weight decay on γ and β.
optim_wrapper = dict(paramwise_cfg=dict(norm_decay_mult=0.0))
