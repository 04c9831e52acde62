# Table 4 of the paper, row 1: Mask R-CNN, ResNet-50 and FPN, 2x schedule (App. D, setting 3). BN†
# in the backbone (frozen), no norm in the FPN and the heads.
_base_ = 'mmdet::mask_rcnn/mask-rcnn_r50_fpn_2x_coco.py'
# A ResNet-50 with BN.
checkpoint = 'torchvision://resnet50'

# The base freezes the statistics but trains γ and β; BN† freezes both.
model = dict(
    backbone=dict(
        norm_cfg=dict(type='BN', requires_grad=False),
        init_cfg=dict(type='Pretrained', checkpoint=checkpoint),
    )
)
