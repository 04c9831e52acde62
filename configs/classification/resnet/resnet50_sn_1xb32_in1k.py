# Table 2 of the paper, row 3: SN at (1,32).
_base_ = ['../../_base_/classification/imagenet/1xb32.py', '../../_base_/switch_norm.py']

model = dict(backbone=dict(norm_cfg=_base_.norm_cfg))
