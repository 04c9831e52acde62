# Beyond the paper: the `sn-all` Faster R-CNN of Table 3 with the 2x schedule.
_base_ = './faster-rcnn_r50_fpn_sn-all_1x_coco.py'

train_cfg = dict(max_epochs=24)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.001, by_epoch=False, begin=0, end=500),
    dict(type='MultiStepLR', by_epoch=True, milestones=[16, 22], gamma=0.1, end=24),
]
