# Group SN (Sec. 2 of the paper): SN at (8,32) with ratios for each of two groups of channels.
_base_ = 'resnet50_sn_8xb32_in1k.py'

model = dict(backbone=dict(norm_cfg=dict(num_ratio_groups=2)))
