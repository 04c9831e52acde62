# DeepLabV3+ with SN on Cityscapes, with the toolbox's schedule.
_base_ = [
    '../../_base_/segmentation/models/deeplabv3plus_r50b-d8_sn.py',
    '../../_base_/segmentation/datasets/cityscapes_512x1024.py',
    '../../_base_/segmentation/schedules/schedule_80k.py',
    '../../_base_/segmentation/runtime.py',
]

model = dict(data_preprocessor=dict(size=_base_.crop_size))
