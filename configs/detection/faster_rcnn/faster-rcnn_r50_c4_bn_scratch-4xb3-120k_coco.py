# Table 7 of the paper, row 5: Faster R-CNN, ResNet-50-C4 (App. D, setting 1: 4 GPUs with 3 images
# each, short side 600). BN in the backbone and the conv5 head, from scratch: no ImageNet weights,
# nothing frozen.
_base_ = './faster-rcnn_r50_c4_bn_4xb3-120k_coco.py'

model = dict(
    backbone=dict(frozen_stages=-1, zero_init_residual=False, init_cfg=None),
    roi_head=dict(shared_head=dict(init_cfg=None)),
)
