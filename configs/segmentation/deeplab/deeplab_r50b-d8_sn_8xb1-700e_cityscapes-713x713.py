# Table 5 of the paper, row 3: SN on Cityscapes.
_base_ = [
    '../../_base_/segmentation/models/deeplab_r50b-d8_sn.py',
    '../../_base_/segmentation/datasets/cityscapes_713x713.py',
    '../../_base_/segmentation/schedules/schedule_700e.py',
    '../../_base_/segmentation/runtime.py',
]

model = dict(data_preprocessor=dict(size=_base_.crop_size))
