# Table 3 of the paper, row 1: Faster R-CNN, ResNet-50 and FPN, 1x schedule (App. D, setting 2). BN†
# in the backbone (frozen), no norm in the FPN and the 2fc box head.
_base_ = 'mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py'
# A ResNet-50 with BN.
checkpoint = 'torchvision://resnet50'

# The base freezes the statistics but trains γ and β; BN† freezes both.
model = dict(
    backbone=dict(
        norm_cfg=dict(type='BN', requires_grad=False),
        init_cfg=dict(type='Pretrained', checkpoint=checkpoint),
    )
)
