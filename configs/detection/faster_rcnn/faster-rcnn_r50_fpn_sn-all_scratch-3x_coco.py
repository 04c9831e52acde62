# The `sn-all` Faster R-CNN from scratch: no ImageNet weights, nothing frozen, three times the 1x
# schedule.
_base_ = './faster-rcnn_r50_fpn_sn-all_1x_coco.py'

# As in MMDetection's detectors from scratch, the last γ of a residual branch starts at 1.
model = dict(backbone=dict(frozen_stages=-1, zero_init_residual=False, init_cfg=None))
train_cfg = dict(max_epochs=36)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.001, by_epoch=False, begin=0, end=500),
    dict(type='MultiStepLR', by_epoch=True, milestones=[28, 34], gamma=0.1, end=36),
]
