# To fine-tune the Mask R-CNN of (8,1) that the authors released: the same network, with the parts
# of MMDetection and the 2x schedule.
_base_ = '../mask_rcnn/mask-rcnn_r50_fpn_sn-all_8xb1-2x_coco.py'
# The trained detector, converted.
checkpoint = 'checkpoints/mask-rcnn_r50_fpn_sn_8xb1.pth'

load_from = checkpoint
model = dict(backbone=dict(init_cfg=None))
