# Table 2 of the paper, row 1: BN at (8,32).
_base_ = '../../_base_/classification/imagenet/8xb32.py'
