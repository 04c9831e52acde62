# DeepLabV3 with SN on ADE20K, with the toolbox's schedule.
_base_ = [
    '../../_base_/segmentation/models/deeplabv3_r50b-d8_sn.py',
    '../../_base_/segmentation/datasets/ade20k_512x512.py',
    '../../_base_/segmentation/schedules/schedule_160k.py',
    '../../_base_/segmentation/runtime.py',
]

model = dict(
    data_preprocessor=dict(size=_base_.crop_size),
    decode_head=dict(num_classes=150),
    auxiliary_head=dict(num_classes=150),
)
