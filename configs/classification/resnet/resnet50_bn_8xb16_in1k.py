# Table 2 of the paper, row 1: BN at (8,16).
_base_ = '../../_base_/classification/imagenet/8xb16.py'
