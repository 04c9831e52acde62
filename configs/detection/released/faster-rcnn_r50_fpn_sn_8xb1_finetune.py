# To fine-tune the Faster R-CNN of (8,1) that the authors released: the same network, with the parts
# of MMDetection and the 2x schedule.
_base_ = '../faster_rcnn/faster-rcnn_r50_fpn_sn-all_8xb1-2x_coco.py'
# The trained detector, converted.
checkpoint = 'checkpoints/faster-rcnn_r50_fpn_sn_8xb1.pth'

load_from = checkpoint
model = dict(
    backbone=dict(init_cfg=None),
    # Two linear layers without a norm.
    roi_head=dict(bbox_head=dict(type='Shared2FCBBoxHead')),
)
