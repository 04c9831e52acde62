# Table 2 of the paper, row 2: GN at (8,8).
_base_ = '../../_base_/classification/imagenet/8xb8.py'

model = dict(backbone=dict(norm_cfg=dict(type='GN', num_groups=32)))
