# Faster R-CNN with conv1 to conv4 of a ResNet-50 as backbone and conv5 as head, all BN frozen:
# as in MMDetection, except for the ResNet and its preprocessing. MMDetection's is Caffe's, which no
# SN weights fit; this one has the layout and the preprocessing of torchvision's.
_base_ = 'mmdet::faster_rcnn/faster-rcnn_r50-caffe_c4-1x_coco.py'
# A ResNet-50 with BN.
checkpoint = 'torchvision://resnet50'

init_cfg = dict(type='Pretrained', checkpoint=checkpoint)
model = dict(
    data_preprocessor=dict(
        mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375], bgr_to_rgb=True
    ),
    backbone=dict(style='pytorch', init_cfg=init_cfg),
    roi_head=dict(shared_head=dict(style='pytorch', init_cfg=init_cfg)),
)
