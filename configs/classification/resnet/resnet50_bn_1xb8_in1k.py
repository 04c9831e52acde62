# Table 2 of the paper, row 1: BN at (1,8).
_base_ = '../../_base_/classification/imagenet/1xb8.py'
