# Table 2 of the paper, row 1: BN at (8,4).
_base_ = '../../_base_/classification/imagenet/8xb4.py'
