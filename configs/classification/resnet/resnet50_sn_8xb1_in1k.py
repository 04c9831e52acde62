# Table 2 of the paper, row 3: SN at (8,1). It mixes IN and LN only, since with one image
# BN is IN in training.
_base_ = ['../../_base_/classification/imagenet/8xb1.py', '../../_base_/switch_norm.py']

model = dict(backbone=dict(norm_cfg=dict(_base_.norm_cfg, scopes=('in', 'ln'))))
