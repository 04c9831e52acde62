# Table 2 of the paper, row 2: GN at (8,1).
_base_ = '../../_base_/classification/imagenet/8xb1.py'

model = dict(backbone=dict(norm_cfg=dict(type='GN', num_groups=32)))
