# Table 2 of the paper, row 1: BN at (8,2).
_base_ = '../../_base_/classification/imagenet/8xb2.py'
