# The `sn-all` Faster R-CNN with a ResNet-101, with the 2x schedule.
_base_ = './faster-rcnn_r50_fpn_sn-all_2x_coco.py'
# A ResNet-101 with SN in MMDetection's layout.
checkpoint = 'checkpoints/resnet101_sn.pth'

model = dict(backbone=dict(depth=101, init_cfg=dict(checkpoint=checkpoint)))
