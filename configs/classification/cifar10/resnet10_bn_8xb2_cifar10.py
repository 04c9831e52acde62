# The baseline: BN wherever the config with SN has SN, everything else the same.
_base_ = './resnet10_sn_8xb2_cifar10.py'

model = dict(backbone=dict(norm_cfg=dict(type='BN')))
