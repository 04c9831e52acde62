# To fine-tune the Faster R-CNN C4 that the authors released: the same network, with the parts of
# MMDetection and the 2x schedule.
_base_ = '../faster_rcnn/faster-rcnn_r50_c4_sn_2x_coco.py'
# The trained detector, converted.
checkpoint = 'checkpoints/faster-rcnn_r50_c4_sn.pth'

load_from = checkpoint
model = dict(
    backbone=dict(init_cfg=None),
    roi_head=dict(shared_head=dict(init_cfg=None)),
)
