# Table 2 of the paper, row 2: GN at (1,16).
_base_ = '../../_base_/classification/imagenet/1xb16.py'

model = dict(backbone=dict(norm_cfg=dict(type='GN', num_groups=32)))
