# Table 2 of the paper, row 1: BN at (1,16).
_base_ = '../../_base_/classification/imagenet/1xb16.py'
