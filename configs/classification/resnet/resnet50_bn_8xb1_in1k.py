# Table 2 of the paper, row 1: BN at (8,1), where it did not converge.
_base_ = '../../_base_/classification/imagenet/8xb1.py'
