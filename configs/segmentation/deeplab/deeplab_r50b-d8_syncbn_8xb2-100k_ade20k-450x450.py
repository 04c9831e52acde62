# Table 5 of the paper, row 1: BN over all GPUs on ADE20K.
_base_ = [
    '../../_base_/segmentation/models/deeplab_r50b-d8_syncbn.py',
    '../../_base_/segmentation/datasets/ade20k_450x450.py',
    '../../_base_/segmentation/schedules/schedule_100k.py',
    '../../_base_/segmentation/runtime.py',
]

model = dict(
    data_preprocessor=dict(size=_base_.crop_size),
    decode_head=dict(num_classes=150),
    auxiliary_head=dict(num_classes=150),
)
