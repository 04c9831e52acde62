# Table 7 of the paper, row 6: Faster R-CNN, ResNet-50-C4 (App. D, setting 1: 4 GPUs with 3 images
# each, short side 600). GN in the backbone and the conv5 head, from scratch: no ImageNet weights,
# nothing frozen.
_base_ = './faster-rcnn_r50_c4_bn_4xb3-120k_coco.py'

norm_cfg = dict(type='GN', num_groups=32)
model = dict(
    backbone=dict(norm_cfg=norm_cfg, frozen_stages=-1, zero_init_residual=False, init_cfg=None),
    roi_head=dict(shared_head=dict(norm_cfg=norm_cfg, init_cfg=None)),
)
